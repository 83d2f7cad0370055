package oteltraces

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// saidCache remembers what was made of resources, by their bytes: a process writes its
// resource alike in every request. It holds no part of a body.
type saidCache[T any] struct {
	seed  maphash.Seed
	known []knownResource[T]
	turn  int // whose place the next one takes
}

type knownResource[T any] struct {
	hash uint64
	said []byte
	made T
}

const (
	// mostResources and mostSaid bound what is remembered: of a resource that says more,
	// everything is made anew each time.
	mostResources = 64
	mostSaid      = 8 << 10
)

// of is what is made of a resource.
func (c *saidCache[T]) of(said []byte, make func() T) T {
	if c.known == nil {
		c.seed = maphash.MakeSeed()
	}
	hash := maphash.Bytes(c.seed, said)
	for i := range c.known {
		if k := &c.known[i]; k.hash == hash && bytes.Equal(k.said, said) {
			return k.made
		}
	}
	k := knownResource[T]{hash, slices.Clone(said), make()}
	if len(c.known) < mostResources {
		c.known = append(c.known, k)
	} else {
		c.known[c.turn%mostResources] = k
		c.turn++
	}
	return k.made
}
