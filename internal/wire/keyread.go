package wire

import (
	"math"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// ReadKey reads the bytes of a key into k. Its labels are parts of raw, not
// copies, and its lists of tags are those that k had, overwritten: so a key that
// nobody will keep costs no memory. It is good until raw is written to, and a
// label that shall outlive it must be cloned. After an error k is empty.
//
// Labels are as the tracer wrote them: over-long and invalid ones are for
// Key.Normalize to mend.
func ReadKey(k *span.Key, raw []byte) error {
	var r keyReader
	return r.key(k, raw)
}

// key reads a whole key.
func (r *keyReader) key(k *span.Key, raw []byte) error {
	*r = keyReader{Reader: msgpack.NewReader(raw), raw: raw}
	r.count = r.Array()
	if r.count < minKeyElements || r.count > maxKeyElements {
		k.Clear()
		return malformed("decode key", len(raw), "expected an array of %d to %d, found %s", minKeyElements,
			maxKeyElements, found(raw, 0))
	}
	r.labels(k)
	switch {
	case r.Failed():
		k.Clear()
		return malformed("decode key", len(raw)-r.At(), "element %d: expected %s, found %s", r.read,
			keyLabels[r.read], found(raw, r.At()))
	case r.Left() != 0:
		k.Clear()
		return malformed("decode key", r.Left(), "%d bytes follow the last label", r.Left())
	}
	return nil
}

// keyLabels says what stands at each place of a key, for an error.
var keyLabels = [maxKeyElements]string{
	"the service, a string or nil", "the operation, a string or nil", "the resource, a string or nil",
	"the type, a string or nil", "the kind, a string or nil", "the trace root, nil, true or false",
	"the HTTP status, an integer below 2^32 or nil",
	"the peer tags, at most 256 strings or nil", "the HTTP method, a string or nil",
	"the HTTP endpoint, a string or nil",
	"the gRPC status, a string or nil", "the service source, a string or nil", "synthetics, a boolean or nil",
	"the additional tags, at most 256 strings or nil",
}

// keyReader reads the elements of a key one after the other. An element that a key does
// not have reads as if it were nil.
type keyReader struct {
	msgpack.Reader
	raw   []byte
	count int // elements
	read  int // elements that were right
}

// elementsToPeerTags is how many elements a key has that says nothing of HTTP or gRPC.
const elementsToPeerTags = 8

func (r *keyReader) labels(k *span.Key) {
	r.texts(k, span.LabelService, span.LabelHTTPMethod)
	k.TraceRoot = r.traceRoot()
	k.HTTPStatus = r.status()
	k.PeerTags = r.tags(k.PeerTags[:0])
	if r.count <= elementsToPeerTags {
		k.HTTPMethod, k.HTTPEndpoint, k.GRPCStatus, k.ServiceSource = "", "", "", ""
		k.Synthetics, k.AdditionalTags = false, k.AdditionalTags[:0]
		return
	}
	r.texts(k, span.LabelHTTPMethod, span.FirstList)
	k.Synthetics = r.flag()
	k.AdditionalTags = r.tags(k.AdditionalTags[:0])
}

// texts reads the labels from one up to another, which lie one behind the other.
func (r *keyReader) texts(k *span.Key, from, to span.Label) {
	for label := from; label < to; label++ {
		text, next := msgpack.CommonStr(r.raw, r.At())
		if next == 0 || r.read >= r.count || r.Failed() {
			*k.Text(label) = r.text()
			continue
		}
		*k.Text(label) = stringOf(text.Of(r.raw))
		r.Seek(next)
		r.done()
	}
}

// isAbsent steps over a nil, and reports whether there is no element or it was one.
func (r *keyReader) isAbsent() bool {
	if r.read < r.count && !r.IsNil() {
		return false
	}
	r.done()
	return true
}

// done counts an element that was right.
func (r *keyReader) done() {
	if !r.Failed() {
		r.read++
	}
}

func (r *keyReader) text() string {
	if r.isAbsent() {
		return ""
	}
	s := r.string()
	r.done()
	return s
}

func (r *keyReader) string() string { return stringOf(r.Str().Of(r.raw)) }

// stringOf are the same bytes, not a copy.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

func (r *keyReader) status() uint32 {
	if r.isAbsent() {
		return 0
	}
	status := r.Uint(math.MaxUint32)
	r.done()
	return uint32(status)
}

func (r *keyReader) flag() bool {
	if r.isAbsent() {
		return false
	}
	is := r.Bool()
	r.done()
	return is
}

func (r *keyReader) traceRoot() span.TraceRoot {
	if r.isAbsent() {
		return span.TraceRootNotSet
	}
	isRoot := r.Bool()
	r.done()
	if isRoot {
		return span.TraceRootTrue
	}
	return span.TraceRootFalse
}

// tags reads a list into the room of an empty one.
func (r *keyReader) tags(to []string) []string {
	if r.isAbsent() {
		return to
	}
	count := r.Array()
	if count > maxKeyTags {
		r.Fail()
	}
	for ; count > 0 && !r.Failed(); count-- {
		text, next := msgpack.CommonStr(r.raw, r.At())
		switch {
		case next != 0:
			r.Seek(next)
			to = append(to, stringOf(text.Of(r.raw)))
		case r.IsNil():
			to = append(to, "")
		default:
			to = append(to, r.string())
		}
	}
	r.done()
	return to
}
