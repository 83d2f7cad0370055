package client

import (
	"hash/maphash"
	"unicode/utf8"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	// maxKeyBytes is an upper bound of the encoded length of a truncated key: 64 peer tags of 200 bytes, 4 additional
	// tags of 400, a resource of 5000, and the rest.
	maxKeyBytes = 21 << 10
	// stringOverhead is the maximum length of a string header, keyOverhead that of all headers of a key
	// except those of its tags.
	stringOverhead = 5
	keyOverhead    = 80
)

// maxEncodedLength returns an upper bound for the length of the encoding of k. It only adds up string lengths,
// because it is called for nearly every published span.
func maxEncodedLength(k *Key) int {
	length := keyOverhead + len(k.Service) + len(k.Operation) + len(k.Resource) + len(k.Type) + len(k.Kind) +
		len(k.HTTPMethod) + len(k.HTTPEndpoint) + len(k.GRPCStatus) + len(k.ServiceSource)
	for _, tag := range k.PeerTags {
		length += stringOverhead + len(tag)
	}
	for _, tag := range k.AdditionalTags {
		length += stringOverhead + len(tag)
	}
	return length
}

// isOversized reports whether the key must be truncated before it is encoded. maxLength is the result of
// maxEncodedLength.
func isOversized(k *Key, maxLength int) bool {
	return maxLength > maxKeyBytes || len(k.PeerTags) > span.MaxPeerTags ||
		len(k.AdditionalTags) > span.MaxAdditionalTags
}

// keyTruncator contains a truncated key and its tags, so that truncating allocates nothing.
type keyTruncator struct {
	key            Key
	peerTags       [span.MaxPeerTags]string
	additionalTags [span.MaxAdditionalTags]string
}

// truncate returns a copy of k with texts and tag lists shortened to the part that the daemon uses; the daemon
// would ignore the rest. The copy is valid until the next call.
func (t *keyTruncator) truncate(k *Key) *Key {
	t.key = *k
	for label := range span.EndOfTexts { // the labels that are texts, not lists of tags
		text := t.key.Text(label)
		*text = truncateLabel(*text, label)
	}
	t.key.PeerTags = truncateTags(t.peerTags[:], k.PeerTags, span.LabelPeerTag)
	t.key.AdditionalTags = truncateTags(t.additionalTags[:], k.AdditionalTags, span.LabelAdditionalTag)
	return &t.key
}

// truncateTags writes as many truncated tags to dst as fit, and returns them.
func truncateTags(dst, tags []string, label span.Label) []string {
	count := min(len(dst), len(tags))
	for i, tag := range tags[:count] {
		dst[i] = truncateLabel(tag, label)
	}
	return dst[:count]
}

// truncateLabel truncates the text of a label to the bytes that the daemon reads. The daemon replaces invalid UTF-8
// before it truncates the text, and for that reads some bytes after the maximum length.
func truncateLabel(text string, label span.Label) string {
	bytesRead := label.MaxBytes() + utf8.UTFMax
	return text[:min(len(text), bytesRead)]
}

const (
	// maxKnownKeys is the number of keys per buffer that can be found by their labels: those with the
	// lowest numbers. Other keys are encoded and found in the keyTable.
	maxKnownKeys = 256
	// maxKnownTags is the maximum number of tags of such a key, in both lists together.
	maxKnownTags = 6
	// labelSlots is large enough that few keys share a slot.
	labelSlots = 2 * maxKnownKeys
	// skippedBuffers is the number of buffers for which a label table is not used after it has found few
	// keys.
	skippedBuffers = 15
)

// labelTable maps labels to the number that the current buffer has assigned to their key. It finds most keys by
// comparing labels, which is faster than encoding the key and looking up the result.
type labelTable struct {
	keys          [maxKnownKeys]keyLabels // by key number
	usedKeys      int                     // all elements of keys from this index on are empty
	lastNumber    uint8                   // key number that was found or added last
	predictedNext [maxKnownKeys]uint8     // by key number: key number that followed it the last time
	numbersByHash [labelSlots]uint8       // key number that was added last with the hash

	hits, misses  int // results of find for this buffer
	buffersToSkip int // number of buffers for which the table is not used
}

// keyLabels contains the labels of a key, without references to slices of the caller.
type keyLabels struct {
	service, operation, resource, kind, typ             string
	httpMethod, httpEndpoint, grpcStatus, serviceSource string

	tags               [maxKnownTags]string // peer tags, then additional tags
	httpStatus         uint32
	peerTagCount       uint8
	additionalTagCount uint8
	traceRoot          TraceRoot
	synthetics         bool
	isSet              bool
}

// isPaused reports whether the table is not used for the current buffer, because it found few keys in earlier ones.
func (t *labelTable) isPaused() bool { return t.buffersToSkip > 0 }

// find returns the number that the current buffer has assigned to the labels k. ok is false if the table does not
// contain k or is paused. Tracers often publish the same sequence of spans again. So find first tries the labels that
// followed the previous labels the last time.
func (t *labelTable) find(k *Key) (number uint8, ok bool) {
	if t.isPaused() {
		return 0, false
	}
	number = t.predictedNext[t.lastNumber] // a guess; 0 if the last labels are new
	ok = t.keys[number].equal(k)
	if !ok {
		number = t.numbersByHash[hashLabels(k)] // also a guess, because other labels can have the same hash
		ok = t.keys[number].equal(k)
	}
	if !ok {
		t.misses++
		return 0, false
	}
	t.hits++
	t.recordUse(number)
	return number, true
}

// recordUse records that the labels with this number were used last, and predicts that they follow the previous ones
// the next time, too.
func (t *labelTable) recordUse(number uint8) {
	t.predictedNext[t.lastNumber] = number
	t.lastNumber = number
}

// add stores the labels k and their number in the current buffer, so that find returns the number. It does nothing if
// k has too many tags, if the number is too large, or while the table is paused.
func (t *labelTable) add(k *Key, number uint32) {
	hasTooManyTags := len(k.PeerTags)+len(k.AdditionalTags) > maxKnownTags
	if hasTooManyTags || number >= maxKnownKeys || t.isPaused() {
		return
	}
	t.keys[number].set(k)
	t.usedKeys = max(t.usedKeys, int(number)+1)
	t.numbersByHash[hashLabels(k)] = uint8(number)
	t.recordUse(uint8(number))
}

// removeAll removes all keys, so that the garbage collector can free the caller's strings.
func (t *labelTable) removeAll() {
	clear(t.keys[:t.usedKeys])
	t.usedKeys = 0
}

// startBuffer empties the table for a new buffer. If fewer than half of the lookups for the last buffer were
// successful, it pauses the table for the next skippedBuffers buffers, because encoding all labels is faster then.
func (t *labelTable) startBuffer() {
	t.removeAll()
	if t.isPaused() {
		t.buffersToSkip--
	} else if t.hits < t.misses {
		t.buffersToSkip = skippedBuffers
	}
	t.hits, t.misses = 0, 0
}

// hashLabels returns a hash of k that is less than labelSlots. To be fast, it ignores some labels, and reads only
// the length and the last byte of others. So different keys can have the same hash.
func hashLabels(k *Key) uint64 {
	hash := maphash.String(seed, k.Resource)
	hash += uint64(k.HTTPStatus)
	hash += 31*lengthAndLast(k.Service) + 37*lengthAndLast(k.Operation) + 41*lengthAndLast(k.Kind)
	for _, tag := range k.PeerTags {
		hash = 43*hash + lengthAndLast(tag)
	}
	return hash % labelSlots
}

// lengthAndLast returns a number that consists of the length and the last byte of text.
func lengthAndLast(text string) uint64 {
	if text == "" {
		return 0
	}
	length := uint64(len(text))
	lastByte := uint64(text[len(text)-1])
	return length<<8 | lastByte
}

// set copies the labels of a key.
func (l *keyLabels) set(k *Key) {
	*l = keyLabels{
		service: k.Service, operation: k.Operation, resource: k.Resource, kind: k.Kind, typ: k.Type,
		httpMethod: k.HTTPMethod, httpEndpoint: k.HTTPEndpoint, grpcStatus: k.GRPCStatus,
		serviceSource: k.ServiceSource, httpStatus: k.HTTPStatus, peerTagCount: uint8(len(k.PeerTags)),
		additionalTagCount: uint8(len(k.AdditionalTags)), traceRoot: k.TraceRoot, synthetics: k.Synthetics,
		isSet: true,
	}
	copy(l.tags[:], k.PeerTags)
	copy(l.tags[len(k.PeerTags):], k.AdditionalTags)
}

// equal reports whether l is set and contains the same labels as k. It compares the resource first, because most
// keys differ in it.
func (l *keyLabels) equal(k *Key) bool {
	return l.isSet &&
		equalText(l.resource, k.Resource) && equalText(l.service, k.Service) && equalText(l.operation, k.Operation) &&
		equalText(l.kind, k.Kind) && equalText(l.typ, k.Type) &&
		l.httpStatus == k.HTTPStatus && l.traceRoot == k.TraceRoot && l.synthetics == k.Synthetics &&
		equalText(l.httpMethod, k.HTTPMethod) && equalText(l.httpEndpoint, k.HTTPEndpoint) &&
		equalText(l.grpcStatus, k.GRPCStatus) && equalText(l.serviceSource, k.ServiceSource) &&
		equalTags(l.peerTags(), k.PeerTags) && equalTags(l.additionalTags(), k.AdditionalTags)
}

func (l *keyLabels) peerTags() []string { return l.tags[:l.peerTagCount] }

func (l *keyLabels) additionalTags() []string {
	return l.tags[l.peerTagCount:][:l.additionalTagCount]
}

// equalTags reports whether both lists contain the same tags in the same order.
func equalTags(stored, tags []string) bool {
	if len(stored) != len(tags) {
		return false
	}
	for i, tag := range tags {
		if !equalText(stored[i], tag) {
			return false
		}
	}
	return true
}

// equalText returns a == b. It is faster for two references to the same string, which most labels are, because
// they are constants of the tracer. It is called about ten times per snapshot.
func equalText(a, b string) bool {
	return len(a) == len(b) && (unsafe.StringData(a) == unsafe.StringData(b) || a == b)
}
