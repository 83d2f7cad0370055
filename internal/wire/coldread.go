package wire

import (
	"bytes"
	"math"

	"github.com/vmihailenco/msgpack/v5"
)

// The largest list in a cold message: what a writer cuts a list to, and what a
// reader refuses to go beyond. The lists are advice to a tracer, so a shorter
// one costs some work and loses nothing.
const (
	maxListElements = 1024
	maxListBytes    = 64 << 10
)

// coldReader reads a cold message from msgpack/v5. It is stricter than the
// library: a byte string is no string, a negative number no count, and an
// extension nothing at all. A nil reads as the zero value everywhere. The first
// fault sticks, and nothing is read after it.
type coldReader struct {
	doing string
	dec   *msgpack.Decoder
	err   error
}

// readCold hands each entry of a body that is a map to field, whose reader then
// stands at the entry's value.
func readCold(t Type, body []byte, field func(r *coldReader, name string)) error {
	doing := "decode " + t.String()
	if err := validate(doing, body); err != nil {
		return err
	}
	r := &coldReader{doing: doing, dec: msgpack.NewDecoder(bytes.NewReader(body))}
	r.fields(field)
	return r.err
}

// fields reads a map whose keys are strings. A key that comes twice is read
// twice, so its last value stands.
func (r *coldReader) fields(field func(r *coldReader, name string)) {
	if r.absent("map", isMap) {
		return
	}
	count, err := r.dec.DecodeMapLen()
	r.check(err)
	for i := 0; i < count && r.err == nil; i++ {
		if r.absent("string as a field's name", isStr) {
			r.fault("a field's name is nil")
			return
		}
		name, err := r.dec.DecodeString()
		r.check(err)
		if r.err == nil {
			field(r, name)
		}
	}
}

func (r *coldReader) text() string {
	if r.absent("string", isStr) {
		return ""
	}
	s, err := r.dec.DecodeString()
	r.check(err)
	return s
}

func (r *coldReader) number() uint64 {
	if r.absent("integer", isInteger) {
		return 0
	}
	if lead, _ := r.dec.PeekCode(); lead < int8v {
		v, err := r.dec.DecodeUint64()
		r.check(err)
		return v
	}
	v, err := r.dec.DecodeInt64()
	r.check(err)
	if v < 0 {
		r.fault("expected no negative number, found %d", v)
		return 0
	}
	return uint64(v)
}

// size reads a number that is a size in memory.
func (r *coldReader) size() int {
	v := r.number()
	if v > math.MaxInt32 {
		r.fault("expected a size below 2^31, found %d", v)
		return 0
	}
	return int(v)
}

func (r *coldReader) flag() bool {
	if r.absent("boolean", isBool) {
		return false
	}
	v, err := r.dec.DecodeBool()
	r.check(err)
	return v
}

func (r *coldReader) texts() []string {
	var list []string
	size := 0
	r.list(func() {
		s := r.text()
		if size += len(s); size > maxListBytes {
			r.fault("expected a list of at most %d bytes", maxListBytes)
		}
		list = append(list, s)
	})
	return list
}

func (r *coldReader) numbers() []uint64 {
	var list []uint64
	r.list(func() { list = append(list, r.number()) })
	return list
}

func (r *coldReader) list(element func()) {
	if r.absent("array", isArray) {
		return
	}
	count, err := r.dec.DecodeArrayLen()
	r.check(err)
	if count > maxListElements {
		r.fault("expected a list of at most %d elements, found %d", maxListElements, count)
	}
	for i := 0; i < count && r.err == nil; i++ {
		element()
	}
}

// skip steps over the value of a field that this version does not know.
func (r *coldReader) skip() { r.check(r.dec.Skip()) }

// absent steps over a nil and reports that there was one. Any other value must
// be of the kind wanted. After a fault everything is absent.
func (r *coldReader) absent(want string, kind func(lead byte) bool) bool {
	if r.err != nil {
		return true
	}
	lead, err := r.dec.PeekCode()
	switch {
	case err != nil:
		r.check(err)
	case lead == nilLead:
		r.check(r.dec.DecodeNil())
	case !kind(lead):
		r.fault("expected %s, found lead byte 0x%02x", want, lead)
	default:
		return false
	}
	return true
}

func (r *coldReader) check(err error) {
	if err != nil {
		r.fault("%v", err)
	}
}

func (r *coldReader) fault(format string, args ...any) {
	if r.err == nil {
		r.err = malformed(r.doing, format, args...)
	}
}

func isMap(lead byte) bool   { return lead&0xf0 == fixMap || lead == map16 || lead == map32 }
func isArray(lead byte) bool { return lead&0xf0 == fixArray || lead == array16 || lead == array32 }
func isStr(lead byte) bool   { return lead&0xe0 == fixStr || lead >= str8 && lead <= str32 }
func isBool(lead byte) bool  { return lead == falseVal || lead == trueVal }
func isInteger(lead byte) bool {
	return lead < fixMap || lead >= fixNegative || lead >= uint8v && lead <= int64v
}
