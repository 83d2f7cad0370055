package bodies

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// DedupCache stores the hashes of counted bodies. A body with the hash of a counted one is a retry, whatever the
// response to the first attempt was. Other bodies are never equal, because they contain trace ids and timestamps.
//
// The cache keeps each body for MaxAge, and evicts older ones before that only if it would exceed its maximum. It grows
// with the number of bodies. The caller must hold a lock from Has to Add, so that only one of two equal bodies at the same
// time is counted.
type DedupCache struct {
	seed    maphash.Seed
	start   time.Time
	max     int
	index   map[uint64]int // number of the last entry, by hash
	ring    []counted      // entry number n is at position n modulo the length
	first   int            // number of the oldest entry
	next    int            // number of the next entry
	evicted atomic.Uint64
}

// counted is an entry for a counted body.
type counted struct {
	sum    uint64        // hash of the body
	at     time.Duration // time when it was counted, since the start of the cache
	length uint32        // bytes of the body
}

const (
	// MaxAge is the age at which an entry is removed. It is twice the time after which any known sender stops to retry.
	MaxAge = 10 * time.Minute
	// firstEntries is the initial length of the ring.
	firstEntries = 256
	// entryBytes is the maximum memory of an entry, while the ring is copied to a longer one.
	entryBytes = 80
)

// Limits of MaxCounted. A gateway of 200 requests per second sends 120,000 bodies in MaxAge.
const (
	minCounted   = 4096
	maxCounted   = 128 << 10
	bytesPerBody = 256 // of Config.MaxBodyBytes
)

// MaxCounted returns the maximum number of entries of a receiver with the given memory for bodies. The memory preset
// determines both.
func MaxCounted(maxBodyBytes int) int {
	return min(max(minCounted, maxBodyBytes/bytesPerBody), maxCounted)
}

// DedupBytes returns the memory of a cache with a maximum number of entries.
func DedupBytes(maxEntries int) int { return maxEntries * entryBytes }

// NewDedupCache returns an empty cache for up to maxEntries bodies.
func NewDedupCache(maxEntries int) *DedupCache {
	return &DedupCache{
		seed: maphash.MakeSeed(), start: time.Now(), max: maxEntries, index: map[uint64]int{},
		ring: make([]counted, min(firstEntries, maxEntries)),
	}
}

// Sum returns the hash of a body. It is safe for concurrent use.
func (d *DedupCache) Sum(body []byte) uint64 { return maphash.Bytes(d.seed, body) }

// Has reports whether a body with the given hash was counted.
func (d *DedupCache) Has(sum uint64, now time.Time) bool {
	number, isKnown := d.index[sum]
	return isKnown && now.Sub(d.start)-d.entry(number).at < MaxAge
}

// HasLength reports whether a body of the given length was counted. With a negative length it reports whether any body
// was counted. It searches all entries.
func (d *DedupCache) HasLength(length int64, now time.Time) bool {
	for number := d.first; number < d.next; number++ {
		c := d.entry(number)
		if (length < 0 || int64(c.length) == length) && now.Sub(d.start)-c.at < MaxAge {
			return true
		}
	}
	return false
}

// Add adds an entry for a counted body. It removes old entries, and evicts the oldest one if there are too many.
func (d *DedupCache) Add(sum uint64, length int, now time.Time) {
	for d.first < d.next && now.Sub(d.start)-d.entry(d.first).at >= MaxAge {
		d.removeFirst()
	}
	if d.next-d.first == d.max {
		d.removeFirst()
		d.evicted.Add(1)
	}
	if d.next-d.first == len(d.ring) {
		d.grow()
	}
	*d.entry(d.next), d.index[sum] = counted{sum, now.Sub(d.start), uint32(length)}, d.next
	d.next++
}

// Evicted returns the number of entries that were removed before MaxAge. A retry of such a body is counted twice.
func (d *DedupCache) Evicted() uint64 { return d.evicted.Load() }

func (d *DedupCache) entry(number int) *counted { return &d.ring[number%len(d.ring)] }

func (d *DedupCache) removeFirst() {
	if sum := d.entry(d.first).sum; d.index[sum] == d.first {
		delete(d.index, sum)
	}
	d.first++
}

func (d *DedupCache) grow() {
	longer := make([]counted, min(2*len(d.ring), d.max))
	for number := d.first; number < d.next; number++ {
		longer[number%len(longer)] = *d.entry(number)
	}
	d.ring = longer
}
