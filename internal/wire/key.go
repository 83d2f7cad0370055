package wire

import (
	"math"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// A key is encoded as a msgpack array. The index of an element determines its label. The first three elements are
// mandatory, and the array ends with the last label that is set.
const (
	minKeyElements = 3
	maxKeyElements = 14
	maxKeyTags     = 256 // per list of tags; Key.Normalize reduces this further
)

// AppendKey appends the canonical encoding of a key: equal keys have equal bytes. It writes every label and
// then removes those after the last one that is set, each of which took one byte.
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

// keyElements returns the number of elements in the encoded key. The encoding ends with the last label that
// is set, but has at least minKeyElements elements.
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

// appendOptional appends a string, or nil if it is empty.
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

// appendTags appends a list of tags. It omits all tags after the first maxKeyTags, because ReadKey
// rejects a longer list. The statistics keep far fewer tags.
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

// ReadKey decodes a key into k without allocating: labels are parts of raw, and the tag lists of k are
// reused. So k is valid until raw changes, and labels that must live longer have to be cloned. After an
// error, k is empty.
//
// Labels are those that the client sent. Key.Normalize fixes labels that are too long or not valid UTF-8.
func ReadKey(k *span.Key, raw []byte) error {
	var r keyReader
	return r.key(k, raw)
}

// key decodes the encoded key raw into k. If it returns an error, k is empty.
func (r *keyReader) key(k *span.Key, raw []byte) error {
	*r = keyReader{Reader: msgpack.NewReader(raw), raw: raw}
	r.count = r.Array()
	if r.count < minKeyElements || r.count > maxKeyElements {
		k.Clear()
		return malformed("decode key", len(raw), "expected an array of %d to %d, found %s", minKeyElements,
			maxKeyElements, describe(raw, 0))
	}
	r.labels(k)
	switch {
	case r.Failed():
		k.Clear()
		return malformed("decode key", len(raw)-r.At(), "element %d: expected %s, found %s", r.read,
			keyLabels[r.read], describe(raw, r.At()))
	case r.Left() != 0:
		k.Clear()
		return malformed("decode key", r.Left(), "%d bytes follow the last label", r.Left())
	}
	return nil
}

// keyLabels describes each element of a key, for error messages.
var keyLabels = [maxKeyElements]string{
	"the service, a string or nil", "the operation, a string or nil", "the resource, a string or nil",
	"the type, a string or nil", "the kind, a string or nil", "the trace root, nil, true or false",
	"the HTTP status, an integer below 2^32 or nil",
	"the peer tags, at most 256 strings or nil", "the HTTP method, a string or nil",
	"the HTTP endpoint, a string or nil",
	"the gRPC status, a string or nil", "the service source, a string or nil", "synthetics, a boolean or nil",
	"the additional tags, at most 256 strings or nil",
}

// keyReader reads the elements of a key one after the other. It reads nil for elements after the end of the
// array.
type keyReader struct {
	msgpack.Reader
	raw   []byte
	count int // number of elements
	read  int // number of elements that were read successfully
}

// elementsToPeerTags is the number of elements of a key that ends with its peer tags. Keys of spans that
// are neither HTTP nor gRPC are not longer.
const elementsToPeerTags = 8

// labels reads all labels, in the order of their elements.
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

// texts reads the text labels from one up to, but not including, another. Their elements are consecutive.
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

// isAbsent reports whether the next element is missing or nil, and skips it in that case.
func (r *keyReader) isAbsent() bool {
	if r.read < r.count && !r.IsNil() {
		return false
	}
	r.done()
	return true
}

// done counts an element, unless reading it has failed.
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

// stringOf returns text as a string that shares its memory.
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
	isSet := r.Bool()
	r.done()
	return isSet
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

// tags reads a list of tags and appends them to dst.
func (r *keyReader) tags(dst []string) []string {
	if r.isAbsent() {
		return dst
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
			dst = append(dst, stringOf(text.Bytes(r.raw)))
		case r.IsNil():
			dst = append(dst, "")
		default:
			dst = append(dst, r.string())
		}
	}
	r.done()
	return dst
}

// minDefinitionLen is the minimum length of a definition: an array header, a number and an empty byte
// string.
const minDefinitionLen = 4

// BeginDefine begins a define message. The caller appends definitions, then calls EndDefine with the length
// that dst had before.
func BeginDefine(dst []byte) []byte { return beginList(dst, TypeDefine) }

// EndDefine ends the define message that starts at dst[start] and contains count definitions.
func EndDefine(dst []byte, start, count int) { endList(dst, start, count) }

// AppendDefinition appends a definition, which assigns a number to an encoded key.
func AppendDefinition(dst []byte, number uint32, key []byte) []byte {
	return appendBin(appendUint(append(dst, msgpack.FixArray|2), uint64(number)), key)
}

// DefineWalker decodes the definitions of one define message in place.
type DefineWalker struct {
	rest  []byte // bytes that have not been read
	left  int    // number of definitions that have not been read
	count int    // number of definitions in the message
	err   error
}

// WalkDefine returns a walker at the first definition of a define message.
func WalkDefine(body []byte) (DefineWalker, error) {
	count, rest, err := readArrayHeader("walk define", body, minDefinitionLen)
	return DefineWalker{rest: rest, left: count, count: count}, err
}

// Err returns the error that ended the walk, or nil.
func (w *DefineWalker) Err() error { return w.err }

// Left returns the number of bytes that have not been read.
func (w *DefineWalker) Left() int { return len(w.rest) }

// Next returns the next definition: a number, and the encoded key that clients send the number for. The key
// shares the memory of the message. Next returns false at the end of the message, or after an error, which
// Err returns.
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
			w.count-w.left, w.count, describe(w.rest, r.At()))
		w.rest, w.left = nil, 0
		return 0, nil, false
	}
	w.rest = w.rest[r.At():]
	w.left--
	return number, key, true
}
