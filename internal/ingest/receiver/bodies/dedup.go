package bodies

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// DedupCache stores the hashes of request bodies whose spans were counted. A body with the same hash is a retry,
// whatever the response to the first attempt was: bodies contain trace IDs and timestamps, so that two different
// requests never have equal bodies.
//
// The cache keeps each entry for MaxAge. It evicts an entry earlier only to stay within its maximum number of entries. The
// caller must hold a lock from Has to Add, so that only one of two equal bodies at the same time is counted.
type DedupCache struct {
	seed       maphash.Seed
	start      time.Time
	maxEntries int
	newest     map[uint64]int // sequence number of the newest entry, by hash
	ring       []dedupEntry   // the entry with sequence number n is at index n modulo the length
	oldest     int            // sequence number of the oldest entry
	next       int            // sequence number of the next entry
	evicted    atomic.Uint64
}

// dedupEntry is an entry for a counted body.
type dedupEntry struct {
	hash      uint64        // hash of the body
	countedAt time.Duration // time when the body was counted, since the start of the cache
	length    uint32        // bytes of the body
}

const (
	// MaxAge is the age at which an entry is removed. It is twice the time after which any known sender stops to retry.
	MaxAge = 10 * time.Minute
	// firstEntries is the initial length of the ring.
	firstEntries = 256
	// entryBytes is the maximum memory of an entry, while the ring is copied to a longer one.
	entryBytes = 80
)

// Limits of MaxDedupEntries. A gateway of 200 requests per second sends 120,000 bodies in MaxAge.
const (
	leastEntries = 4096
	mostEntries  = 128 << 10
	bytesPerBody = 256 // of Config.MaxBodyBytes
)

// MaxDedupEntries returns the maximum number of entries for a receiver with the given memory for bodies. The memory
// preset determines both.
func MaxDedupEntries(maxBodyBytes int) int {
	return min(max(leastEntries, maxBodyBytes/bytesPerBody), mostEntries)
}

// DedupBytes returns the memory of a cache with a maximum number of entries.
func DedupBytes(maxEntries int) int { return maxEntries * entryBytes }

// NewDedupCache returns an empty cache for up to maxEntries bodies.
func NewDedupCache(maxEntries int) *DedupCache {
	return &DedupCache{
		seed: maphash.MakeSeed(), start: time.Now(), maxEntries: maxEntries, newest: map[uint64]int{},
		ring: make([]dedupEntry, min(firstEntries, maxEntries)),
	}
}

// Hash returns the hash of a body. It is safe for concurrent use.
func (d *DedupCache) Hash(body []byte) uint64 { return maphash.Bytes(d.seed, body) }

// Has reports whether a body with the given hash was counted in the last MaxAge.
func (d *DedupCache) Has(hash uint64, now time.Time) bool {
	number, isKnown := d.newest[hash]
	return isKnown && !d.isExpired(number, now)
}

// HasAny reports whether any body was counted in the last MaxAge.
func (d *DedupCache) HasAny(now time.Time) bool {
	return d.len() > 0 && !d.isExpired(d.next-1, now)
}

// HasLength reports whether a body of the given length was counted in the last MaxAge. It searches all entries.
func (d *DedupCache) HasLength(length int64, now time.Time) bool {
	for number := d.oldest; number < d.next; number++ {
		if int64(d.entry(number).length) == length && !d.isExpired(number, now) {
			return true
		}
	}
	return false
}

// Add stores the hash and the length of a body whose spans were counted at the time now. It first removes expired
// entries. If the cache is still full, it evicts the oldest entry.
func (d *DedupCache) Add(hash uint64, length int, now time.Time) {
	for d.len() > 0 && d.isExpired(d.oldest, now) {
		d.removeOldest()
	}
	isCacheFull := d.len() == d.maxEntries
	if isCacheFull {
		d.removeOldest()
		d.evicted.Add(1)
	}
	isRingFull := d.len() == len(d.ring)
	if isRingFull {
		d.growRing()
	}
	*d.entry(d.next) = dedupEntry{hash: hash, countedAt: now.Sub(d.start), length: uint32(length)}
	d.newest[hash] = d.next
	d.next++
}

// Evicted returns the number of entries that were removed before MaxAge. A retry of such a body is counted twice.
func (d *DedupCache) Evicted() uint64 { return d.evicted.Load() }

// len returns the number of entries.
func (d *DedupCache) len() int { return d.next - d.oldest }

// entry returns the entry with a sequence number.
func (d *DedupCache) entry(number int) *dedupEntry { return &d.ring[number%len(d.ring)] }

// isExpired reports whether the entry with a sequence number is at least MaxAge old.
func (d *DedupCache) isExpired(number int, now time.Time) bool {
	age := now.Sub(d.start) - d.entry(number).countedAt
	return age >= MaxAge
}

// removeOldest removes the oldest entry. It keeps the hash in newest if a newer entry has the same hash.
func (d *DedupCache) removeOldest() {
	hash := d.entry(d.oldest).hash
	if d.newest[hash] == d.oldest {
		delete(d.newest, hash)
	}
	d.oldest++
}

// growRing doubles the length of the ring, up to maxEntries.
func (d *DedupCache) growRing() {
	longer := make([]dedupEntry, min(2*len(d.ring), d.maxEntries))
	for number := d.oldest; number < d.next; number++ {
		longer[number%len(longer)] = *d.entry(number)
	}
	d.ring = longer
}
