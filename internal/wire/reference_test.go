package wire

import (
	"bytes"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span"
	library "github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// reference decodes data messages with msgpack/v5, in the simplest way. It checks each lead byte itself, because the
// library accepts nil as a number and a string as a byte string. It keeps the first error.
type reference struct {
	reader *bytes.Reader
	dec    *library.Decoder
	bad    bool
}

func newReference(b []byte) *reference {
	reader := bytes.NewReader(b)
	return &reference{reader: reader, dec: library.NewDecoder(reader)}
}

// isComplete reports whether everything was read without an error.
func (r *reference) isComplete() bool { return !r.bad && r.reader.Len() == 0 }

func (r *reference) lead() byte {
	lead, err := r.dec.PeekCode()
	r.bad = r.bad || err != nil
	return lead
}

func (r *reference) must(ok bool) { r.bad = r.bad || !ok }

func (r *reference) array(least, most int) int {
	lead := r.lead()
	r.must(msgpcode.IsFixedArray(lead) || lead == msgpcode.Array16 || lead == msgpcode.Array32)
	if r.bad {
		return 0
	}
	n, err := r.dec.DecodeArrayLen()
	r.must(err == nil && n >= least && n <= most)
	if r.bad {
		return 0
	}
	return n
}

// integer returns the number as a float64 and as its 64 bits.
func (r *reference) integer() (v uint64, negative bool) {
	lead := r.lead()
	signed := lead >= msgpcode.Int8 && lead <= msgpcode.Int64 || lead >= msgpcode.NegFixedNumLow
	unsigned := lead <= msgpcode.PosFixedNumHigh || lead >= msgpcode.Uint8 && lead <= msgpcode.Uint64
	r.must(signed || unsigned)
	if r.bad {
		return 0, false
	}
	if signed {
		n, err := r.dec.DecodeInt64()
		r.must(err == nil)
		return uint64(n), n < 0
	}
	v, err := r.dec.DecodeUint64()
	r.must(err == nil)
	return v, false
}

func (r *reference) upTo(most uint64) uint64 {
	v, negative := r.integer()
	r.must(!negative && v <= most)
	return v
}

func (r *reference) bytes() []byte {
	r.must(msgpcode.IsBin(r.lead()))
	return r.content()
}

// content reads a string or a byte string if its length is plausible. For other lengths, the library would allocate a
// megabyte.
func (r *reference) content() []byte {
	if r.bad {
		return nil
	}
	n, err := r.dec.DecodeBytesLen()
	r.must(err == nil && n <= r.reader.Len())
	if r.bad {
		return nil
	}
	b := make([]byte, n)
	r.must(r.dec.ReadFull(b) == nil)
	return b
}

// absent reports whether the next value is nil, and skips it if it is.
func (r *reference) absent() bool {
	if r.bad || r.lead() != msgpcode.Nil {
		return r.bad
	}
	r.must(r.dec.DecodeNil() == nil)
	return true
}

func (r *reference) text() string {
	if r.absent() {
		return ""
	}
	r.must(msgpcode.IsString(r.lead()))
	return string(r.content())
}

func (r *reference) flag() bool {
	if r.absent() {
		return false
	}
	v, err := r.dec.DecodeBool()
	r.must(err == nil)
	return v
}

func (r *reference) weight() float64 {
	if lead := r.lead(); lead == msgpcode.Float || lead == msgpcode.Double {
		v, err := r.dec.DecodeFloat64()
		r.must(err == nil && v > 0 && v <= 1<<32)
		return v
	}
	return float64(r.upTo(1 << 32))
}

// referenceSpans decodes the body of a spans message.
func referenceSpans(body []byte) ([]Snapshot, bool) {
	r := newReference(body)
	n := r.array(0, len(body))
	var all []Snapshot
	for i := 0; i < n && !r.bad; i++ {
		fields := r.array(4, 5)
		s := Snapshot{Weight: 1}
		if msgpcode.IsBin(r.lead()) {
			s.Key = r.bytes()
		} else {
			s.Number, s.Numbered = uint32(r.upTo(math.MaxUint32)), true
		}
		duration, negative := r.integer()
		if !negative {
			s.Duration = duration
		}
		end, negative := r.integer()
		r.must(negative || end <= math.MaxInt64)
		s.End = int64(end)
		s.Flags = span.Flags(r.upTo(3))
		if fields == 5 {
			s.Weight = r.weight()
			r.must(s.Weight > 0)
		}
		all = append(all, s)
	}
	return all, r.isComplete()
}

// referenceKey decodes a key.
func referenceKey(raw []byte) (span.Key, bool) {
	r := newReference(raw)
	var k span.Key
	n := r.array(3, 14)
	read := []func(){
		func() { k.Service = r.text() },
		func() { k.Operation = r.text() },
		func() { k.Resource = r.text() },
		func() { k.Type = r.text() },
		func() { k.Kind = r.text() },
		func() {
			if !r.absent() {
				k.TraceRoot = map[bool]span.TraceRoot{
					true:  span.TraceRootTrue,
					false: span.TraceRootFalse,
				}[r.flag()]
			}
		},
		func() {
			if !r.absent() {
				k.HTTPStatus = uint32(r.upTo(math.MaxUint32))
			}
		},
		func() { k.PeerTags = r.tags() },
		func() { k.HTTPMethod = r.text() },
		func() { k.HTTPEndpoint = r.text() },
		func() { k.GRPCStatus = r.text() },
		func() { k.ServiceSource = r.text() },
		func() { k.Synthetics = r.flag() },
		func() { k.AdditionalTags = r.tags() },
	}
	for _, label := range read[:n] {
		label()
	}
	return k, r.isComplete()
}

func (r *reference) tags() []string {
	if r.absent() {
		return nil
	}
	var tags []string
	n := r.array(0, 256)
	for range n {
		tags = append(tags, r.text())
	}
	return tags
}
