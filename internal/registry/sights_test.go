package registry

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestSightsHaveAllThatWasAddedAndLittleElse fills a generation with as many values as the
// essay says, from several goroutines.
func TestSightsHaveAllThatWasAddedAndLittleElse(t *testing.T) {
	s := sights{count: mostSightBytes / 8}
	const now, before generation = 1, 0
	const added, adders = 500_000, 4
	at := func(i int) spot { return s.spotOf(textHash(fmt.Sprint("GET /orders/", i)).identity(7, 2)) }
	var all sync.WaitGroup
	for a := range adders {
		all.Go(func() {
			for i := a; i < added; i += adders {
				s.add(now, at(i))
			}
		})
	}
	all.Wait()
	wrong := 0
	for i := range 2 * added {
		switch is := s.has(now, at(i)); {
		case is.inOther:
			t.Fatalf("value %d was added to another interval", i)
		case i < added && !is.inThis:
			t.Fatalf("value %d was added, and is not there", i)
		case i >= added && is.inThis:
			wrong++
		}
		if i < added && !s.has(before, at(i)).inOther {
			t.Fatalf("value %d is not there for the other interval", i)
		}
	}
	t.Logf("%d of %d values that were not added are there", wrong, added)
	if wrong > added/1000 {
		t.Errorf("%d of %d values that were not added are there", wrong, added)
	}
	first := at(0)
	s.add(before, first)
	s.clear(now)
	for i := range added {
		// A value whose bits are all among the first one's cannot be told from it.
		isFirst := at(i).pair == first.pair && at(i).bits&^first.bits == 0
		if is := s.has(now, at(i)); is != (came{inOther: isFirst}) {
			t.Fatalf("value %d is there after a clear: %+v", i, is)
		}
	}
}

// TestAHashSetFindsWhatAMapFinds: also hashes that differ in their lowest bit only, which says
// something else, and 0.
func TestAHashSetFindsWhatAMapFinds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 24))
	for n := range 200 {
		set, want := newHashSet(n), map[uint64]bool{}
		for range n {
			hash := rnd.Uint64() >> rnd.IntN(64)
			if _, known := want[hash|1]; !known {
				want[hash|1] = rnd.IntN(2) == 0 || hash|1 == 1
				set.put(hash, want[hash|1])
			}
		}
		for range 500 {
			hash := rnd.Uint64() >> rnd.IntN(64)
			isRepeated, known := want[hash|1]
			if got := set.find(hash); got != map[bool]sight{true: map[bool]sight{true: repeated, false: cameBefore}[isRepeated]}[known] {
				t.Fatalf("%x is %d; known %t, repeated %t", hash, got, known, isRepeated)
			}
		}
	}
	if hashSet(nil).find(1) != firstSight {
		t.Error("an empty set knows something")
	}
}

// TestMarksAreKeptWhileTheListGrows marks numbers while others are made room for.
func TestMarksAreKeptWhileTheListGrows(t *testing.T) {
	var m marks
	const numbers = 20 * chunkMarks
	m.grow(0)
	m.mark(0) // however late the other goroutine is
	var both sync.WaitGroup
	told := make(chan uint32, numbers)
	both.Go(func() {
		for number := range uint32(numbers) {
			m.grow(number)
			told <- number
		}
		close(told)
	})
	both.Go(func() {
		for number := range told {
			if number%3 == 0 {
				m.mark(number)
			}
		}
	})
	both.Wait()
	for number := range uint32(numbers) {
		if m.has(number) != (number%3 == 0) {
			t.Fatalf("number %d is marked: %t", number, m.has(number))
		}
	}
}
