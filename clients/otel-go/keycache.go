package spanstatsd

import (
	"hash/maphash"
	"sync"

	"github.com/spanstatsd/spanstatsd/client"
)

const (
	// cacheShards is the number of maps, so that goroutines rarely wait for the lock of one.
	cacheShards = 16
	// maxShardBytes is the maximum memory of one generation of a shard. A shard has two.
	maxShardBytes = 128 << 10
	// entryBytes is the memory of an entry without its fingerprint: the map's, and an encoded key of some length.
	entryBytes = 256
)

// keyCache maps fingerprints to encoded keys. When a shard is full, it forgets the keys that were not used since it
// was full for the last time, so names with identifiers displace each other rather than the keys in use.
type keyCache struct {
	seed   maphash.Seed
	shards [cacheShards]cacheShard
}

type cacheShard struct {
	mu               sync.Mutex
	recent, previous map[string]*client.EncodedKey
	bytes            int // memory of recent
}

// newKeyCache returns an empty cache.
func newKeyCache() *keyCache { return &keyCache{seed: maphash.MakeSeed()} }

// shard returns the shard of a fingerprint.
func (c *keyCache) shard(fingerprint []byte) *cacheShard {
	return &c.shards[maphash.Bytes(c.seed, fingerprint)%cacheShards]
}

// get returns the key of a fingerprint, or nil.
func (c *keyCache) get(fingerprint []byte) *client.EncodedKey {
	s := c.shard(fingerprint)
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := s.recent[string(fingerprint)]; key != nil {
		return key
	}
	key := s.previous[string(fingerprint)]
	if key != nil {
		s.add(fingerprint, key)
	}
	return key
}

// add stores the key of a fingerprint. An empty fingerprint identifies no key, and is not stored.
func (c *keyCache) add(fingerprint []byte, key *client.EncodedKey) {
	if len(fingerprint) == 0 {
		return
	}
	s := c.shard(fingerprint)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(fingerprint, key)
}

// add stores a key in the recent generation. A full generation becomes the previous one.
func (s *cacheShard) add(fingerprint []byte, key *client.EncodedKey) {
	size := len(fingerprint) + entryBytes
	if s.recent == nil || s.bytes+size > maxShardBytes {
		s.recent, s.previous, s.bytes = map[string]*client.EncodedKey{}, s.recent, 0
	}
	s.recent[string(fingerprint)] = key
	s.bytes += size
}
