package wire

import (
	"math"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// A key is one msgpack array. The place of an element says which label it is;
// the first three are always there, the others end with the last that is set.
const (
	minKeyElements = 3
	maxKeyElements = 14
	maxKeyTags     = 256 // in each of the two lists, normalised to fewer later
)

// AppendKey appends the canonical bytes of the key: equal keys give equal bytes. It
// writes every label, and takes back those behind the last that is set: each of them
// took one byte.
func AppendKey(dst []byte, k *span.Key) []byte {
	count := keyElements(k)
	dst = append(dst, msgpack.FixArray|byte(count))
	dst = appendStr(dst, k.Service)
	dst = appendStr(dst, k.Operation)
	dst = appendStr(dst, k.Resource)
	dst = appendOptional(dst, k.Type)
	dst = appendOptional(dst, k.Kind)
	dst = appendTraceRoot(dst, k.TraceRoot)
	dst = appendStatus(dst, k.HTTPStatus)
	dst = appendTags(dst, k.PeerTags)
	dst = appendOptional(dst, k.HTTPMethod)
	dst = appendOptional(dst, k.HTTPEndpoint)
	dst = appendOptional(dst, k.GRPCStatus)
	dst = appendOptional(dst, k.ServiceSource)
	if k.Synthetics {
		dst = append(dst, msgpack.True)
	} else {
		dst = append(dst, msgpack.Nil)
	}
	dst = appendTags(dst, k.AdditionalTags)
	return dst[:len(dst)-(maxKeyElements-count)]
}

// keyElements is how many elements the key needs. It asks from the end, because
// the last labels are the rarest.
func keyElements(k *span.Key) int {
	switch {
	case len(k.AdditionalTags) != 0:
		return 14
	case k.Synthetics:
		return 13
	case k.ServiceSource != "":
		return 12
	case k.GRPCStatus != "":
		return 11
	case k.HTTPEndpoint != "":
		return 10
	case k.HTTPMethod != "":
		return 9
	case len(k.PeerTags) != 0:
		return 8
	case k.HTTPStatus != 0:
		return 7
	case k.TraceRoot == span.TraceRootTrue || k.TraceRoot == span.TraceRootFalse:
		return 6
	case k.Kind != "":
		return 5
	case k.Type != "":
		return 4
	}
	return minKeyElements
}

func appendOptional(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, msgpack.Nil)
	}
	return appendStr(dst, s)
}

func appendStatus(dst []byte, status uint32) []byte {
	if status == 0 {
		return append(dst, msgpack.Nil)
	}
	return appendUint(dst, uint64(status))
}

func appendTraceRoot(dst []byte, root span.TraceRoot) []byte {
	switch root {
	case span.TraceRootTrue:
		return append(dst, msgpack.True)
	case span.TraceRootFalse:
		return append(dst, msgpack.False)
	}
	return append(dst, msgpack.Nil)
}

// appendTags writes no more tags than a reader takes. Those are many more than
// the statistics keep.
func appendTags(dst []byte, tags []string) []byte {
	if len(tags) == 0 {
		return append(dst, msgpack.Nil)
	}
	tags = tags[:min(len(tags), maxKeyTags)]
	dst = appendArray(dst, len(tags))
	for _, tag := range tags {
		dst = appendStr(dst, tag)
	}
	return dst
}

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
		*k.Text(label) = stringOf(text.Bytes(r.raw))
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

func (r *keyReader) string() string { return stringOf(r.Str().Bytes(r.raw)) }

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
			to = append(to, stringOf(text.Bytes(r.raw)))
		case r.IsNil():
			to = append(to, "")
		default:
			to = append(to, r.string())
		}
	}
	r.done()
	return to
}

// minDefinition is the fewest bytes that a definition can have: an array header,
// a number and an empty byte string.
const minDefinition = 4

// BeginDefine begins a define message: append its definitions, then call
// EndDefine with the length that dst had before.
func BeginDefine(dst []byte) []byte { return beginCounted(dst, TypeDefine) }

// EndDefine finishes the message that begins at dst[start] and holds count
// definitions.
func EndDefine(dst []byte, start, count int) { endCounted(dst, start, count) }

// AppendDefinition appends that number stands for the key with these bytes.
func AppendDefinition(dst []byte, number uint32, key []byte) []byte {
	return appendBin(appendUint(append(dst, msgpack.FixArray|2), uint64(number)), key)
}

// DefineWalker walks the definitions of one message in place.
type DefineWalker struct {
	rest  []byte
	left  int
	count int
	err   error
}

// WalkDefine begins to walk the body of a define message.
func WalkDefine(body []byte) (DefineWalker, error) {
	count, rest, err := openArray("walk define", body, minDefinition)
	return DefineWalker{rest: rest, left: count, count: count}, err
}

// Err is why the walk ended before the message did, or nil.
func (w *DefineWalker) Err() error { return w.err }

// Left is how many bytes of the message are to come.
func (w *DefineWalker) Left() int { return len(w.rest) }

// Next returns the next definition and whether there was one. The key aliases
// the message. After false, Err tells the end from a fault.
func (w *DefineWalker) Next() (number uint32, key []byte, ok bool) {
	if w.left == 0 {
		if len(w.rest) != 0 && w.err == nil {
			w.err = malformed("walk define", len(w.rest), "%d bytes follow the last of %d definitions",
				len(w.rest), w.count)
		}
		return 0, nil, false
	}
	r := msgpack.NewReader(w.rest)
	if r.Array() != 2 {
		r.Fail()
	}
	number = uint32(r.Uint(math.MaxUint32))
	key = r.Bin().Bytes(w.rest)
	if r.Failed() {
		w.err = malformed("walk define", len(w.rest)-r.At(), "definition %d of %d: expected an array of a "+
			"number below 2^32 and a byte string, found %s",
			w.count-w.left, w.count, found(w.rest, r.At()))
		w.rest, w.left = nil, 0
		return 0, nil, false
	}
	w.rest = w.rest[r.At():]
	w.left--
	return number, key, true
}
