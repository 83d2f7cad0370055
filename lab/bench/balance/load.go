package main

import "math/rand/v2"

// load is a distribution of traffic over keys.
type load struct {
	name    string
	weights func(key int) int
}

// types is the number of keys in the compared loads.
const types = 100

var loads = []load{
	{"100 types, of weights 24, 8, 4 and 1", func(key int) int {
		switch {
		case key < 20:
			return 24
		case key < 50:
			return 8
		case key < 70:
			return 4
		}
		return 1
	}},
	{"skewed, one of 100 keys is 60 %", func(key int) int {
		switch {
		case key == 0:
			return 540
		case key < 10:
			return 30
		}
		return 1
	}},
}

// hashes returns one period of the load in random order, each item as the hash of its key. The
// seed is fixed, so that the initial routing is always the same.
func (l load) hashes(keys int) (hashes []uint32) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for key := range keys {
		hash := rnd.Uint32()
		for range l.weights(key) {
			hashes = append(hashes, hash)
		}
	}
	rnd.Shuffle(len(hashes), func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] })
	return hashes
}
