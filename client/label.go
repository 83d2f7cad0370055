package client

import (
	"hash/maphash"
	"unicode/utf8"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	// maxKeyBytes is more than any key has after cut: 64 peer tags of 200 bytes,
	// 4 additional ones of 400, a resource of 5000, and the rest.
	maxKeyBytes = 21 << 10
	// stringOverhead is the longest header of a string, keyOverhead those of a
	// whole key without its tags.
	stringOverhead = 5
	keyOverhead    = 80
)

// keyBound is how many bytes the key's encoding can have at most. It is
// asked of every snapshot, so it only adds.
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

// isOversized reports whether the key must be cut before it is encoded.
func isOversized(k *Key, bound int) bool {
	return bound > maxKeyBytes || len(k.PeerTags) > span.MaxPeerTags ||
		len(k.AdditionalTags) > span.MaxAdditionalTags
}

// cutter holds the cut tags of one key, so that cutting allocates nothing.
type cutter struct {
	key  Key
	tags [span.MaxPeerTags + span.MaxAdditionalTags]string
}

// cut returns the key without the bytes that the daemon would throw away. The
// daemon repairs UTF-8 within the first limit+utf8.UTFMax bytes of a label before
// it cuts, so with those it comes to the same label.
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

func cutTags(dst, tags []string, of span.Label) []string {
	dst = dst[:min(len(dst), len(tags))]
	for i := range dst {
		dst[i] = head(tags[i], of.MaxBytes())
	}
	return dst
}

func head(s string, limit int) string {
	return s[:min(len(s), limit+utf8.UTFMax)]
}

const (
	// maxKnownKeys is how many keys of a buffer are found by their labels: those
	// with the lowest numbers. The others are encoded and found by their bytes.
	maxKnownKeys = 256
	// maxKnownTags is the most tags that such a key has, both lists together.
	maxKnownTags = 6
	// labelPlaces keeps most keys a place of their own.
	labelPlaces = 2 * maxKnownKeys
	// restBuffers is for how long a table is left alone that was of no use.
	restBuffers = 15
)

// labelTable finds the number that a key has in the buffer that is being filled,
// by its labels, without encoding them.
//
// A key that it finds was compared label by label, so it can't be wrong. The table tries the
// key that followed the last one before, then the key that was learned last at the same place.
// Where most keys are new to their buffer it costs more than it saves, so it rests for the
// next buffers and is tried again after them.
//
// It keeps labels of the publishers, as strings, which never change: as many as
// the buffer defines, and no longer than it is being filled.
type labelTable struct {
	known  [maxKnownKeys]labels // by number
	used   int                  // none is known from here on
	last   uint8                // number that was found or learned last
	after  [maxKnownKeys]uint8  // what came after a number the last time
	places [labelPlaces]uint8   // number that was learned last, by hash

	found, missed int // in this buffer
	rest          int // for how many buffers it is not to be asked
}

// labels are those of a key, and nothing that its owner may change.
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

// find returns the key's number, if it is known.
func (t *labelTable) find(k *Key) (number uint8, ok bool) {
	if t.rest > 0 {
		return 0, false
	}
	number = t.after[t.last]
	if !t.known[number].are(k) {
		number = t.places[labelPlace(k)]
		if !t.known[number].are(k) {
			t.missed++
			return 0, false
		}
		t.after[t.last] = number
	}
	t.last = number
	t.found++
	return number, true
}

// learn remembers the key's number.
func (t *labelTable) learn(k *Key, number uint32) {
	if t.rest > 0 || number >= maxKnownKeys || len(k.PeerTags)+len(k.AdditionalTags) > maxKnownTags {
		return
	}
	n := uint8(number)
	t.known[n].set(k)
	t.used = max(t.used, int(n)+1)
	t.places[labelPlace(k)] = n
	t.after[t.last], t.last = n, n
}

// forget lets go of all labels.
func (t *labelTable) forget() {
	clear(t.known[:t.used])
	t.used = 0
}

// reset begins with a new buffer.
func (t *labelTable) reset() {
	t.forget()
	if t.rest > 0 {
		t.rest--
	} else if t.found < t.missed {
		t.rest = restBuffers
	}
	t.found, t.missed = 0, 0
}

// labelPlace looks at as little of the key as tells most keys apart: all of the
// resource, of other labels the length and the end. Keys that share a place only
// take it from one another.
func labelPlace(k *Key) uint64 {
	h := maphash.String(seed, k.Resource)
	h += uint64(k.HTTPStatus) + 31*ending(k.Service) + 37*ending(k.Operation) + 41*ending(k.Kind)
	for _, tag := range k.PeerTags {
		h = 43*h + ending(tag)
	}
	return h % labelPlaces
}

func ending(s string) uint64 {
	if s == "" {
		return 0
	}
	return uint64(len(s))<<8 | uint64(s[len(s)-1])
}

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

// are reports whether they are those of the key. The resource comes first because
// it tells most keys apart.
func (l *labels) are(k *Key) bool {
	return l.isKnown &&
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

// same is a == b, with a short way for a string and itself: most labels are
// constants of the tracer, and it is asked ten times a snapshot.
func same(a, b string) bool {
	return len(a) == len(b) && (unsafe.StringData(a) == unsafe.StringData(b) || a == b)
}
