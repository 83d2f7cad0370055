package client

import (
	"hash/maphash"
	"unicode/utf8"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	// maxKeyBytes is an upper bound of the encoded length of a key that cutter.cut has truncated: 64 peer tags of 200
	// bytes, 4 additional tags of 400, a resource of 5000, and the rest.
	maxKeyBytes = 21 << 10
	// stringOverhead is the maximum length of a string header, keyOverhead that of all headers of a key
	// except those of its tags.
	stringOverhead = 5
	keyOverhead    = 80
)

// keyBound returns an upper bound of the encoded length of a key. It is called for every snapshot with
// labels, so it only adds lengths.
func keyBound(k *Key) int {
	n := keyOverhead + len(k.Service) + len(k.Operation) + len(k.Resource) + len(k.Type) + len(k.Kind) +
		len(k.HTTPMethod) + len(k.HTTPEndpoint) + len(k.GRPCStatus) + len(k.ServiceSource)
	for _, tag := range k.PeerTags {
		n += stringOverhead + len(tag)
	}
	for _, tag := range k.AdditionalTags {
		n += stringOverhead + len(tag)
	}
	return n
}

// isOversized reports whether the key must be truncated before it is encoded. bound is the result of
// keyBound.
func isOversized(k *Key, bound int) bool {
	return bound > maxKeyBytes || len(k.PeerTags) > span.MaxPeerTags ||
		len(k.AdditionalTags) > span.MaxAdditionalTags
}

// cutter contains a truncated key and its tags, so that truncating allocates nothing.
type cutter struct {
	key  Key
	tags [span.MaxPeerTags + span.MaxAdditionalTags]string
}

// cut returns the key without the bytes that the daemon ignores. The daemon replaces invalid UTF-8 within
// the first limit+utf8.UTFMax bytes of a label before it truncates it, so these bytes are kept.
func (c *cutter) cut(k *Key) *Key {
	c.key = *k
	for l := range span.FirstList {
		text := c.key.Text(l)
		*text = head(*text, l.MaxBytes())
	}
	peer, additional := c.tags[:span.MaxPeerTags], c.tags[span.MaxPeerTags:]
	c.key.PeerTags = cutTags(peer, k.PeerTags, span.LabelPeerTag)
	c.key.AdditionalTags = cutTags(additional, k.AdditionalTags, span.LabelAdditionalTag)
	return &c.key
}

func cutTags(dst, tags []string, l span.Label) []string {
	dst = dst[:min(len(dst), len(tags))]
	for i := range dst {
		dst[i] = head(tags[i], l.MaxBytes())
	}
	return dst
}

// head returns the part of a label that the daemon reads.
func head(s string, limit int) string {
	return s[:min(len(s), limit+utf8.UTFMax)]
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

type labelTable struct {
	known     [maxKnownKeys]keyLabels // by key number
	used      int                     // all entries of known from this index on are empty
	last      uint8                   // number that was found or added last
	successor [maxKnownKeys]uint8     // by key number: number that followed it the last time
	slots     [labelSlots]uint8       // by hash: number that was added last

	found, missed int // results of find for this buffer
	skip          int // number of buffers for which the table is not used
}

// keyLabels contains the labels of a key, without references to slices of the caller.
type keyLabels struct {
	service, operation, resource, kind, typ             string
	httpMethod, httpEndpoint, grpcStatus, serviceSource string

	tags                     [maxKnownTags]string // peer tags, then additional tags
	httpStatus               uint32
	peerTags, additionalTags uint8 // number of tags
	traceRoot                TraceRoot
	synthetics               bool
	isSet                    bool
}

// find returns the number of a key, if it is in the table.
func (t *labelTable) find(k *Key) (number uint8, ok bool) {
	if t.skip > 0 {
		return 0, false
	}
	number = t.successor[t.last]
	if !t.known[number].equal(k) {
		number = t.slots[labelSlot(k)]
		if !t.known[number].equal(k) {
			t.missed++
			return 0, false
		}
		t.successor[t.last] = number
	}
	t.last = number
	t.found++
	return number, true
}

// add adds a key with its number, unless it has too many tags.
func (t *labelTable) add(k *Key, number uint32) {
	if t.skip > 0 || number >= maxKnownKeys || len(k.PeerTags)+len(k.AdditionalTags) > maxKnownTags {
		return
	}
	n := uint8(number)
	t.known[n].set(k)
	t.used = max(t.used, int(n)+1)
	t.slots[labelSlot(k)] = n
	t.successor[t.last], t.last = n, n
}

// forget removes all labels, so that the caller's strings can be freed.
func (t *labelTable) forget() {
	clear(t.known[:t.used])
	t.used = 0
}

// reset prepares the table for a new buffer. A table that has found less than half of the keys is not used for the next
// buffers, because looking up keys in vain is slower than encoding them.
func (t *labelTable) reset() {
	t.forget()
	if t.skip > 0 {
		t.skip--
	} else if t.found < t.missed {
		t.skip = skippedBuffers
	}
	t.found, t.missed = 0, 0
}

// labelSlot returns the slot of a key. It hashes the resource, and the length and the last byte of some other labels,
// which is fast and distinguishes most keys. Keys in the same slot overwrite each other.
func labelSlot(k *Key) uint64 {
	h := maphash.String(seed, k.Resource)
	h += uint64(k.HTTPStatus) + 31*lengthAndLast(k.Service) + 37*lengthAndLast(k.Operation) + 41*lengthAndLast(k.Kind)
	for _, tag := range k.PeerTags {
		h = 43*h + lengthAndLast(tag)
	}
	return h % labelSlots
}

// lengthAndLast combines the length and the last byte of s.
func lengthAndLast(s string) uint64 {
	if s == "" {
		return 0
	}
	return uint64(len(s))<<8 | uint64(s[len(s)-1])
}

func (l *keyLabels) set(k *Key) {
	*l = keyLabels{
		service: k.Service, operation: k.Operation, resource: k.Resource, kind: k.Kind, typ: k.Type,
		httpMethod: k.HTTPMethod, httpEndpoint: k.HTTPEndpoint, grpcStatus: k.GRPCStatus,
		serviceSource: k.ServiceSource, httpStatus: k.HTTPStatus, peerTags: uint8(len(k.PeerTags)),
		additionalTags: uint8(len(k.AdditionalTags)), traceRoot: k.TraceRoot, synthetics: k.Synthetics,
		isSet: true,
	}
	copy(l.tags[copy(l.tags[:], k.PeerTags):], k.AdditionalTags)
}

// equal reports whether l contains the labels of the key. It compares the resource first, because it
// distinguishes most keys.
func (l *keyLabels) equal(k *Key) bool {
	return l.isSet &&
		same(l.resource, k.Resource) && same(l.service, k.Service) && same(l.operation, k.Operation) &&
		same(l.kind, k.Kind) && same(l.typ, k.Type) &&
		l.httpStatus == k.HTTPStatus && l.traceRoot == k.TraceRoot && l.synthetics == k.Synthetics &&
		same(l.httpMethod, k.HTTPMethod) && same(l.httpEndpoint, k.HTTPEndpoint) &&
		same(l.grpcStatus, k.GRPCStatus) && same(l.serviceSource, k.ServiceSource) &&
		int(l.peerTags) == len(k.PeerTags) && int(l.additionalTags) == len(k.AdditionalTags) &&
		sameTags(l.tags[:], k.PeerTags) && sameTags(l.tags[l.peerTags:], k.AdditionalTags)
}

func sameTags(known, tags []string) bool {
	for i, tag := range tags {
		if !same(known[i], tag) {
			return false
		}
	}
	return true
}

// same returns a == b. It is faster for two references to the same string, which most labels are, because
// they are constants of the tracer. It is called about ten times per snapshot.
func same(a, b string) bool {
	return len(a) == len(b) && (unsafe.StringData(a) == unsafe.StringData(b) || a == b)
}
