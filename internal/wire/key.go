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

// AppendKey appends the encoding of k, the labels of a span. Equal keys have equal encodings. It leaves out the
// optional labels after the last one that is set.
func AppendKey(dst []byte, k *span.Key) []byte {
	// All labels are appended, as nil if they are not set. Those after the last label that is set are then cut off.
	count := countElements(k)
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
	trailingNils := maxKeyElements - count
	return dst[:len(dst)-trailingNils] // a nil has one byte
}

// countElements returns the length of the array that encodes k. Each label has a fixed position in the array, and the
// array ends with the last label that is set. The cases therefore go from the last position to the first.
func countElements(k *span.Key) int {
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

// appendTags appends a list of tags, or nil if there are no tags. It omits all tags after the first maxKeyTags,
// because decoders reject a longer list.
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

// ReadKey decodes the encoded key raw into k. If it returns an error, k is empty.
//
// The strings in k share the memory of raw, so k is valid until raw changes. Labels can be too long or invalid
// UTF-8; Key.Normalize fixes them.
func ReadKey(k *span.Key, raw []byte) error {
	r := keyReader{Reader: msgpack.NewReader(raw), raw: raw}
	err := r.readKey(k)
	if err != nil {
		k.Clear()
	}
	return err
}

// readKey decodes r.raw into k. It returns an error unless r.raw is exactly one valid key. After an error, the
// content of k is undefined.
func (r *keyReader) readKey(k *span.Key) error {
	r.elements = r.Array()
	if r.elements < minKeyElements || r.elements > maxKeyElements {
		return r.malformedAt(0, "expected an array of %d to %d, found %s", minKeyElements, maxKeyElements,
			describeByte(r.raw, 0))
	}
	r.readLabels(k)
	if r.Failed() {
		return r.malformedAt(r.Pos(), "element %d: expected %s, found %s", r.index,
			keyLabels[r.index], describeByte(r.raw, r.Pos()))
	}
	if r.Unread() != 0 {
		return r.malformedAt(r.Pos(), "%d bytes follow the last label", r.Unread())
	}
	return nil
}

// malformedAt returns an error for the element that starts at r.raw[pos].
func (r *keyReader) malformedAt(pos int, format string, args ...any) error {
	return malformed("decode key", len(r.raw)-pos, format, args...)
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
	raw      []byte
	elements int // number of elements in the key
	index    int // index of the next element, or of the malformed one after a failure
}

// elementsUpToPeerTags is the number of elements of a key that ends with its peer tags. Keys of spans that
// are neither HTTP nor gRPC are not longer.
const elementsUpToPeerTags = 8

// readLabels reads all labels of a key into k, in the order in which they are encoded. It clears the labels of k
// that are not encoded. After a malformed label, r.Failed returns true.
func (r *keyReader) readLabels(k *span.Key) {
	r.readTextLabels(k, span.LabelService, span.LabelKind)
	k.TraceRoot = r.readTraceRoot()
	k.HTTPStatus = r.readStatus()
	k.PeerTags = r.readTags(k.PeerTags[:0])
	endsWithPeerTags := r.elements <= elementsUpToPeerTags
	if endsWithPeerTags {
		clearLabelsAfterPeerTags(k)
		return
	}
	r.readTextLabels(k, span.LabelHTTPMethod, span.LabelServiceSource)
	k.Synthetics = r.readBool()
	k.AdditionalTags = r.readTags(k.AdditionalTags[:0])
}

// clearLabelsAfterPeerTags clears the labels whose elements follow those of the peer tags in an encoded key.
func clearLabelsAfterPeerTags(k *span.Key) {
	k.HTTPMethod = ""
	k.HTTPEndpoint = ""
	k.GRPCStatus = ""
	k.ServiceSource = ""
	k.Synthetics = false
	k.AdditionalTags = k.AdditionalTags[:0]
}

// readTextLabels reads one string for each label of k from first to last. The strings refer to the memory of r.raw.
func (r *keyReader) readTextLabels(k *span.Key, first, last span.Label) {
	for label := first; label <= last; label++ {
		text, isShort := r.readShortText()
		if !isShort {
			text = r.readText()
		}
		*k.Text(label) = text
	}
}

// readShortText reads the next label if it is a string of less than 256 bytes, as most labels are. It returns false and
// reads nothing if the label is something else, or starts in the last few bytes of the key (see msgpack.Lookahead).
func (r *keyReader) readShortText() (text string, ok bool) {
	if r.Failed() || r.index == r.elements {
		return "", false
	}
	position, next := msgpack.CommonStr(r.raw, r.Pos())
	if next == 0 { // CommonStr has not read a string
		return "", false
	}
	r.Seek(next)
	r.index++
	return stringOf(position.Bytes(r.raw)), true
}

// skipAbsent reports whether the next label is absent: it is encoded as nil, or the key has no more elements.
// It moves past an absent label, and otherwise leaves the position unchanged.
func (r *keyReader) skipAbsent() bool {
	isAfterEnd := r.index >= r.elements
	isAbsent := isAfterEnd || r.SkipNil()
	if isAbsent {
		r.index++
	}
	return isAbsent
}

// endElement must be called after each element that was read, so that r.index is the index of the next one. It does
// nothing if the element was malformed.
func (r *keyReader) endElement() {
	if !r.Failed() {
		r.index++
	}
}

func (r *keyReader) readText() string {
	if r.skipAbsent() {
		return ""
	}
	s := r.readString()
	r.endElement()
	return s
}

func (r *keyReader) readString() string { return stringOf(r.Str().Bytes(r.raw)) }

// stringOf returns text as a string that shares its memory.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

func (r *keyReader) readStatus() uint32 {
	if r.skipAbsent() {
		return 0
	}
	status := r.Uint(math.MaxUint32)
	r.endElement()
	return uint32(status)
}

func (r *keyReader) readBool() bool {
	if r.skipAbsent() {
		return false
	}
	isSet := r.Bool()
	r.endElement()
	return isSet
}

func (r *keyReader) readTraceRoot() span.TraceRoot {
	if r.skipAbsent() {
		return span.TraceRootNotSet
	}
	isRoot := r.Bool()
	r.endElement()
	if isRoot {
		return span.TraceRootTrue
	}
	return span.TraceRootFalse
}

// readTags reads a list of tags, which is one element of the encoded key, and appends the tags to dst. The appended
// strings share the memory of r.raw. If the list is malformed or has more than maxKeyTags tags, r.Failed returns true
// afterwards.
func (r *keyReader) readTags(dst []string) []string {
	if r.skipAbsent() {
		return dst
	}
	count := r.Array()
	if count > maxKeyTags {
		r.Fail()
	}
	for i := 0; i < count && !r.Failed(); i++ {
		dst = append(dst, r.readTag())
	}
	r.endElement() // the whole list is one element
	return dst
}

// readTag reads one tag of a list. It returns "" for nil.
func (r *keyReader) readTag() string {
	text, next := msgpack.CommonStr(r.raw, r.Pos())
	if next != 0 { // CommonStr has read a string
		r.Seek(next)
		return stringOf(text.Bytes(r.raw))
	}
	if r.SkipNil() {
		return ""
	}
	return r.readString()
}

// minDefinitionLen is the minimum length of a definition: an array header, a number and an empty byte
// string.
const minDefinitionLen = 4

// BeginDefine appends the start of a define message. The caller then appends definitions with AppendDefinition and calls
// EndDefine.
func BeginDefine(dst []byte) []byte { return beginList(dst, TypeDefine) }

// EndDefine completes the define message that starts at dst[start] and contains count definitions.
func EndDefine(dst []byte, start, count int) { endList(dst, start, count) }

// AppendDefinition appends a definition, which assigns a number to an encoded key.
func AppendDefinition(dst []byte, number uint32, key []byte) []byte {
	dst = append(dst, msgpack.FixArray|2)
	dst = appendUint(dst, uint64(number))
	return appendBin(dst, key)
}

// DefineWalker decodes the definitions of one define message in place.
type DefineWalker struct {
	unread      []byte // bytes that have not been read
	unreadCount int    // number of definitions that have not been read
	count       int    // number of definitions in the message
	err         error
}

// WalkDefine returns a walker at the first definition of a define message.
func WalkDefine(body []byte) (DefineWalker, error) {
	count, rest, err := readArrayHeader("walk define", body, minDefinitionLen)
	return DefineWalker{unread: rest, unreadCount: count, count: count}, err
}

// Err returns the error that ended the walk, or nil.
func (w *DefineWalker) Err() error { return w.err }

// Unread returns the number of bytes that have not been read.
func (w *DefineWalker) Unread() int { return len(w.unread) }

// Next returns the next definition of the message: an encoded key and the number that stands for it. key refers to
// the memory of the message. ok is false at the end of the message or after an error, which Err returns.
func (w *DefineWalker) Next() (number uint32, key []byte, ok bool) {
	if w.unreadCount == 0 {
		w.checkEnd()
		return 0, nil, false
	}
	r := msgpack.NewReader(w.unread)
	if r.Array() != 2 {
		r.Fail()
	}
	number = uint32(r.Uint(math.MaxUint32))
	key = r.Bin().Bytes(w.unread)
	if r.Failed() {
		w.fail(r.Pos())
		return 0, nil, false
	}
	w.unread = w.unread[r.Pos():]
	w.unreadCount--
	return number, key, true
}

// checkEnd sets the error of the walker if bytes follow the last definition.
func (w *DefineWalker) checkEnd() {
	if len(w.unread) != 0 && w.err == nil {
		w.err = malformed("walk define", len(w.unread), "%d bytes follow the last of %d definitions",
			len(w.unread), w.count)
	}
}

// fail ends the walk with an error at w.unread[pos].
func (w *DefineWalker) fail(pos int) {
	w.err = malformed("walk define", len(w.unread)-pos, "definition %d of %d: expected an array of a number below "+
		"2^32 and a byte string, found %s", w.count-w.unreadCount, w.count, describeByte(w.unread, pos))
	w.unread, w.unreadCount = nil, 0
}
