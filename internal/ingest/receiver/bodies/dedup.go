package bodies

import (
	"hash/maphash"
	"slices"
	"time"
)

// DedupCache remembers the hashes of counted bodies. A body with the same hash is a retry, whatever the
// response to the first attempt was: no sender sends equal bytes otherwise, because trace ids and timestamps
// are in them.
//
// It holds the last MaxCounted bodies, each for MaxAge. Its user holds a lock from Has to Add, while it
// publishes the body, so that only one of two equal bodies at the same time is counted.
type DedupCache struct {
	seed  maphash.Seed
	index map[uint64]int // position in ring of the last entry with a hash
	ring  [MaxCounted]counted
	next  int // position of the oldest entry
}

// counted is a body that was counted.
type counted struct {
	sum    uint64 // hash
	length int    // bytes
	at     time.Time
}

const (
	// MaxCounted is more than the bodies that the senders of a pod send until they retry: they send a few
	// bodies per second and retry within seconds, a Collector within five minutes.
	MaxCounted = 4096
	// MaxAge is twice the time for which any known sender retries.
	MaxAge = 10 * time.Minute
)

// NewDedupCache returns an empty cache.
func NewDedupCache() *DedupCache {
	return &DedupCache{seed: maphash.MakeSeed(), index: make(map[uint64]int, MaxCounted)}
}

// Sum returns the hash of a body. Any goroutine may call it.
func (d *DedupCache) Sum(body []byte) uint64 { return maphash.Bytes(d.seed, body) }

// Has reports whether a body was counted.
func (d *DedupCache) Has(sum uint64, now time.Time) bool {
	at, isKnown := d.index[sum]
	return isKnown && now.Sub(d.ring[at].at) < MaxAge
}

// HasLength reports whether a body of that length was counted, or any body if the length is negative. It
// visits all entries.
func (d *DedupCache) HasLength(length int64, now time.Time) bool {
	return slices.ContainsFunc(d.ring[:], func(c counted) bool {
		return (length < 0 || int64(c.length) == length) && now.Sub(c.at) < MaxAge
	})
}

// Add remembers a body that is counted now.
func (d *DedupCache) Add(sum uint64, length int, now time.Time) {
	oldest := d.ring[d.next]
	if isLatest := d.index[oldest.sum] == d.next; isLatest {
		delete(d.index, oldest.sum)
	}
	d.ring[d.next], d.index[sum] = counted{sum, length, now}, d.next
	d.next = (d.next + 1) % MaxCounted
}
