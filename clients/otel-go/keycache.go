package spanstatsd

import (
	"hash/maphash"
	"sync"

	"github.com/spanstatsd/spanstatsd/client"
)

const (
	// cacheShards is large enough that goroutines rarely wait for the lock of a shard.
	cacheShards = 16
	// maxShardBytes is the maximum memory of a map. A shard has two maps.
	maxShardBytes = 128 << 10
	// entryBytes is an estimate of the memory of an entry without its fingerprint.
	entryBytes = 256
)

// keyCache maps fingerprints to encoded keys. A fingerprint is a string that is equal for spans with equal labels. When
// the current map of a shard is full, it becomes the previous map, and a new map is started. Keys that are used move to
// the current map, so that unused keys are evicted.
type keyCache struct {
	seed   maphash.Seed
	shards [cacheShards]cacheShard
}

type cacheShard struct {
	mu           sync.Mutex
	current      map[string]*client.EncodedKey
	previous     map[string]*client.EncodedKey
	currentBytes int // memory of current
}

// newKeyCache returns an empty cache.
func newKeyCache() *keyCache { return &keyCache{seed: maphash.MakeSeed()} }

// shard returns the shard that stores the key of a fingerprint.
func (c *keyCache) shard(fingerprint []byte) *cacheShard {
	hash := maphash.Bytes(c.seed, fingerprint)
	return &c.shards[hash%cacheShards]
}

// get returns the key of a fingerprint, or nil if the cache does not contain it.
func (c *keyCache) get(fingerprint []byte) *client.EncodedKey {
	s := c.shard(fingerprint)
	s.mu.Lock()
	defer s.mu.Unlock()
	if key := s.current[string(fingerprint)]; key != nil {
		return key
	}
	key := s.previous[string(fingerprint)]
	if key != nil {
		s.add(fingerprint, key)
	}
	return key
}

// add stores the key of a fingerprint. It ignores an empty fingerprint, which does not identify a key.
func (c *keyCache) add(fingerprint []byte, key *client.EncodedKey) {
	if len(fingerprint) == 0 {
		return
	}
	s := c.shard(fingerprint)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(fingerprint, key)
}

// add stores a key in the current map. If that is full, it becomes the previous map, and add starts a new one.
func (s *cacheShard) add(fingerprint []byte, key *client.EncodedKey) {
	size := len(fingerprint) + entryBytes
	isFull := s.currentBytes+size > maxShardBytes
	if s.current == nil || isFull {
		s.previous = s.current
		s.current = map[string]*client.EncodedKey{}
		s.currentBytes = 0
	}
	s.current[string(fingerprint)] = key
	s.currentBytes += size
}
