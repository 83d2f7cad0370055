package bodies

import (
	"hash/maphash"
	"slices"
	"time"
)

// DedupCache remembers the hashes of the bodies that were counted, so that a retry of a sender is
// recognized, whichever response it got to its first attempt. No sender sends equal bytes otherwise:
// trace ids and timestamps are in them.
//
// It holds the last MaxCounted bodies, each for MaxAge. Its user serializes Has and Add, and holds its
// lock while it publishes a body, so that of two equal bodies at the same time one is counted.
type DedupCache struct {
	seed  maphash.Seed
	index map[uint64]int // of the last entry with that sum
	ring  [MaxCounted]counted
	next  int
}

// counted is a body that was counted.
type counted struct {
	sum    uint64
	length int // bytes
	at     time.Time
}

const (
	// MaxCounted is more than the senders of a pod send in the time until they retry: they send a
	// few bodies per second and retry within seconds, a Collector within five minutes.
	MaxCounted = 4096
	// MaxAge is twice as long as any known sender retries.
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
	at, is := d.index[sum]
	return is && now.Sub(d.ring[at].at) < MaxAge
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
	if oldest := d.ring[d.next]; d.index[oldest.sum] == d.next {
		delete(d.index, oldest.sum)
	}
	d.ring[d.next], d.index[sum] = counted{sum, length, now}, d.next
	d.next = (d.next + 1) % MaxCounted
}
