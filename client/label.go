package client

import (
	"hash/maphash"
	"unicode/utf8"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	// maxKeyBytes exceeds the length of any key after cut: 64 peer tags of 200 bytes, 4 additional tags
	// of 400, a resource of 5000, and the rest.
	maxKeyBytes = 21 << 10
	// stringOverhead is the maximum header of a string, keyOverhead that of a key without its tags.
	stringOverhead = 5
	keyOverhead    = 80
)

// maxEncodedLen returns an upper limit for the length of the encoded key. It is called for every
// snapshot, so it only adds lengths.
func maxEncodedLen(k *Key) int {
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

// isOversized reports whether the key must be truncated before it is encoded.
func isOversized(k *Key, bound int) bool {
	return bound > maxKeyBytes || len(k.PeerTags) > span.MaxPeerTags ||
		len(k.AdditionalTags) > span.MaxAdditionalTags
}

// cutter is the memory for a truncated key, so that truncation does not allocate.
type cutter struct {
	key  Key
	tags [span.MaxPeerTags + span.MaxAdditionalTags]string
}

// cut returns the key without the bytes that the daemon would discard. The daemon repairs UTF-8 in
// the first limit+utf8.UTFMax bytes of a label before it truncates it, so this yields the same
// label.
func (c *cutter) cut(k *Key) *Key {
	c.key = *k
	for l := range span.FirstList {
		text := c.key.Text(l)
		*text = truncate(*text, l.MaxBytes())
	}
	peer, additional := c.tags[:span.MaxPeerTags], c.tags[span.MaxPeerTags:]
	c.key.PeerTags = cutTags(peer, k.PeerTags, span.LabelPeerTag)
	c.key.AdditionalTags = cutTags(additional, k.AdditionalTags, span.LabelAdditionalTag)
	return &c.key
}

func cutTags(dst, tags []string, of span.Label) []string {
	dst = dst[:min(len(dst), len(tags))]
	for i := range dst {
		dst[i] = truncate(tags[i], of.MaxBytes())
	}
	return dst
}

func truncate(s string, limit int) string {
	return s[:min(len(s), limit+utf8.UTFMax)]
}

const (
	// maxKnownKeys is the number of keys per buffer that are found by their labels: those with the lowest
	// numbers. Other keys are encoded and found by their bytes.
	maxKnownKeys = 256
	// maxKnownTags is the maximum number of tags of such a key, in both lists together.
	maxKnownTags = 6
	// labelPlaces is the number of hash slots.
	labelSlots = 2 * maxKnownKeys
	// restBuffers is the number of buffers for which a useless table is disabled.
	restBuffers = 15
)

// labelTable finds the number of a key in the current buffer by its labels, without encoding them.
//
// It compares all labels of a key, so a match is always correct. It first tries the key that last
// followed the previous one, then the last key with the same hash. If most keys are new to their
// buffer, the table costs more than it saves; then it is disabled for the next buffers.
//
// It retains the labels as strings, which are immutable, only while the buffer is being filled.
type labelTable struct {
	known [maxKnownKeys]labels // by number
	used  int                  // numbers from here on are unknown
	last  uint8                // last number found or added
	after [maxKnownKeys]uint8  // for each number, the one that last followed it
	slots [labelSlots]uint8    // last number added, by hash

	found, missed int // lookups in this buffer
	rest          int // number of buffers for which the table is disabled
}

// labels are the labels of a key, without slices that their owner could modify.
type labels struct {
	service, operation, resource, kind, typ             string
	httpMethod, httpEndpoint, grpcStatus, serviceSource string
	// peer tags, then additional ones
	tags                     [maxKnownTags]string
	httpStatus               uint32
	peerTags, additionalTags uint8 // how many
	traceRoot                TraceRoot
	synthetics               bool
	isKnown                  bool
}

// find returns the number of a key, if it is known.
func (t *labelTable) find(k *Key) (number uint8, ok bool) {
	if t.rest > 0 {
		return 0, false
	}
	number = t.after[t.last]
	if !t.known[number].equal(k) {
		number = t.slots[labelSlot(k)]
		if !t.known[number].equal(k) {
			t.missed++
			return 0, false
		}
		t.after[t.last] = number
	}
	t.last = number
	t.found++
	return number, true
}

// add adds a key with its number.
func (t *labelTable) add(k *Key, number uint32) {
	if t.rest > 0 || number >= maxKnownKeys || len(k.PeerTags)+len(k.AdditionalTags) > maxKnownTags {
		return
	}
	n := uint8(number)
	t.known[n].set(k)
	t.used = max(t.used, int(n)+1)
	t.slots[labelSlot(k)] = n
	t.after[t.last], t.last = n, n
}

// forget removes all references to labels.
func (t *labelTable) forget() {
	clear(t.known[:t.used])
	t.used = 0
}

// reset prepares the table for a new buffer.
func (t *labelTable) reset() {
	t.forget()
	if t.rest > 0 {
		t.rest--
	} else if t.found < t.missed {
		t.rest = restBuffers
	}
	t.found, t.missed = 0, 0
}

// labelSlot returns a hash of a key. It reads only as much as distinguishes most keys: the whole
// resource, and the length and last byte of other labels.
func labelSlot(k *Key) uint64 {
	h := maphash.String(seed, k.Resource)
	h += uint64(k.HTTPStatus) + 31*ending(k.Service) + 37*ending(k.Operation) + 41*ending(k.Kind)
	for _, tag := range k.PeerTags {
		h = 43*h + ending(tag)
	}
	return h % labelSlots
}

func ending(s string) uint64 {
	if s == "" {
		return 0
	}
	return uint64(len(s))<<8 | uint64(s[len(s)-1])
}

// set copies the labels of a key.
func (l *labels) set(k *Key) {
	*l = labels{
		service: k.Service, operation: k.Operation, resource: k.Resource, kind: k.Kind, typ: k.Type,
		httpMethod: k.HTTPMethod, httpEndpoint: k.HTTPEndpoint, grpcStatus: k.GRPCStatus,
		serviceSource: k.ServiceSource, httpStatus: k.HTTPStatus, peerTags: uint8(len(k.PeerTags)),
		additionalTags: uint8(len(k.AdditionalTags)), traceRoot: k.TraceRoot, synthetics: k.Synthetics,
		isKnown: true,
	}
	copy(l.tags[copy(l.tags[:], k.PeerTags):], k.AdditionalTags)
}

// equal reports whether the labels are those of a key. It compares the resource first, which
// distinguishes most keys.
func (l *labels) equal(k *Key) bool {
	return l.isKnown &&
		same(l.resource, k.Resource) && same(l.service, k.Service) && same(l.operation, k.Operation) &&
		same(l.kind, k.Kind) && same(l.typ, k.Type) &&
		l.httpStatus == k.HTTPStatus && l.traceRoot == k.TraceRoot && l.synthetics == k.Synthetics &&
		same(l.httpMethod, k.HTTPMethod) && same(l.httpEndpoint, k.HTTPEndpoint) &&
		same(l.grpcStatus, k.GRPCStatus) && same(l.serviceSource, k.ServiceSource) &&
		int(l.peerTags) == len(k.PeerTags) && int(l.additionalTags) == len(k.AdditionalTags) &&
		sameTags(l.tags[:], k.PeerTags) && sameTags(l.tags[l.peerTags:], k.AdditionalTags)
}

// sameTags reports whether known begins with tags.
func sameTags(known, tags []string) bool {
	for i, tag := range tags {
		if !same(known[i], tag) {
			return false
		}
	}
	return true
}

// same is a == b, with a fast path for identical strings, because most labels are constants of the
// tracer.
func same(a, b string) bool {
	return len(a) == len(b) && (unsafe.StringData(a) == unsafe.StringData(b) || a == b)
}
