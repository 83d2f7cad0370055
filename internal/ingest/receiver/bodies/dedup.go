package bodies

import (
	"hash/maphash"
	"slices"
	"time"
)

// DedupCache stores the hashes of counted bodies. A body with the hash of a counted one is a retry, whatever the
// response to the first attempt was. Other bodies are never equal, because they contain trace ids and timestamps.
//
// The cache keeps the last MaxCounted bodies, each for MaxAge. The caller must hold a lock from Has to Add, so that only
// one of two equal bodies at the same time is counted.
type DedupCache struct {
	seed  maphash.Seed
	index map[uint64]int      // position in ring of the last entry, by hash
	ring  [MaxCounted]counted // circular buffer
	next  int                 // position of the oldest entry in ring
}

// counted is an entry for a counted body.
type counted struct {
	sum    uint64    // hash of the body
	length int       // bytes of the body
	at     time.Time // time when it was counted
}

const (
	// MaxCounted is the maximum number of entries. It is more than the number of bodies that the senders of a pod send
	// until they retry: they send a few bodies per second, and retry within seconds, or within five minutes in case of a
	// Collector.
	MaxCounted = 4096
	// MaxAge is the maximum age of an entry. It is twice the time after which any known sender stops to retry.
	MaxAge = 10 * time.Minute
)

// NewDedupCache returns an empty cache.
func NewDedupCache() *DedupCache {
	return &DedupCache{seed: maphash.MakeSeed(), index: make(map[uint64]int, MaxCounted)}
}

// Sum returns the hash of a body. It is safe for concurrent use.
func (d *DedupCache) Sum(body []byte) uint64 { return maphash.Bytes(d.seed, body) }

// Has reports whether a body with the given hash was counted.
func (d *DedupCache) Has(sum uint64, now time.Time) bool {
	position, isKnown := d.index[sum]
	return isKnown && now.Sub(d.ring[position].at) < MaxAge
}

// HasLength reports whether a body of the given length was counted. With a negative length it reports whether any body
// was counted. It searches all entries.
func (d *DedupCache) HasLength(length int64, now time.Time) bool {
	return slices.ContainsFunc(d.ring[:], func(c counted) bool {
		return (length < 0 || int64(c.length) == length) && now.Sub(c.at) < MaxAge
	})
}

// Add adds an entry for a counted body. It replaces the oldest entry.
func (d *DedupCache) Add(sum uint64, length int, now time.Time) {
	oldest := d.ring[d.next]
	if isLatest := d.index[oldest.sum] == d.next; isLatest {
		delete(d.index, oldest.sum)
	}
	d.ring[d.next], d.index[sum] = counted{sum, length, now}, d.next
	d.next = (d.next + 1) % MaxCounted
}
