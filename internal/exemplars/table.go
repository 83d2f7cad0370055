package exemplars

import (
	"math/bits"
	"sync"
)

// Exemplar is a span whose trace the backend has.
type Exemplar struct {
	TraceHigh, TraceLow uint64
	Span                uint64
	Duration            uint64 // nanoseconds
	End                 int64  // nanoseconds since the Unix epoch
}

// Table is the exemplars of the open cycles. See the package comment. A nil Table has none.
type Table struct {
	mu         sync.Mutex
	cycles     [2]cycle // by the low bit of their numbers: two are open at most
	sealed     uint64   // the number plus one of the last that was sealed
	candidates candidates
	counts     Counts
	body       Body   // that is proposed, under the lock
	bodies     uint64 // so far
}

// DefaultLimit is that of the command line, and MaxLimit more than a receiver keeps.
const (
	DefaultLimit = 4096
	MaxLimit     = 1 << 16
)

// New makes a table of so many exemplars a cycle at most, none where that is 0.
func New(limit int) *Table {
	if limit <= 0 {
		return nil
	}
	t := &Table{candidates: candidates{all: make([]candidate, 0, limit)}}
	for i := range t.cycles {
		t.cycles[i] = cycle{kept: make([]kept, 0, limit), heads: make([]int32, heads(limit))}
	}
	return t
}

// heads is how many lists the exemplars of a cycle are found in: numbers of keys are dense,
// so one list has one or two.
func heads(limit int) int { return 1 << bits.Len(uint(limit-1)) }

// cycle is the exemplars of one.
type cycle struct {
	number uint64 // plus one, 0 before the first
	kept   []kept
	heads  []int32 // of lists of kept, each the place plus one, by the low bits of a name
}

// kept is the exemplar of one key and outcome.
type kept struct {
	Exemplar
	name      uint64
	body      uint64 // that proposed one last, by its number
	candidate int32  // of that body
	next      int32  // in its list, the place plus one
	isThere   bool   // else the agent has taken none yet
}

// nameOf tells keys and outcomes apart.
func nameOf(key uint32, isError bool) uint64 {
	name := uint64(key) << 1
	if isError {
		name++
	}
	return name
}

// at is the cycle of a number, begun if it is the first time.
func (t *Table) at(number uint64) *cycle {
	c := &t.cycles[number&1]
	if c.number != number+1 {
		c.number, c.kept = number+1, c.kept[:0]
		clear(c.heads)
	}
	return c
}

// find is the place of a name, -1 where it has none.
func (c *cycle) find(name uint64) int32 {
	at := c.heads[name&uint64(len(c.heads)-1)] - 1
	for at >= 0 && c.kept[at].name != name {
		at = c.kept[at].next - 1
	}
	return at
}

// place is that of a name and what is there, nil where there is no more room.
func (c *cycle) place(name uint64) (*kept, int32) {
	at := c.find(name)
	if at < 0 {
		if len(c.kept) == cap(c.kept) {
			return nil, -1
		}
		at = int32(len(c.kept))
		head := &c.heads[name&uint64(len(c.heads)-1)]
		c.kept = append(c.kept, kept{name: name, next: *head})
		*head = at + 1
	}
	return &c.kept[at], at
}

// Seal ends a cycle: no candidate becomes an exemplar of it any more. The result is valid
// until the cycle is released.
func (t *Table) Seal(number uint64) Sealed {
	if t == nil {
		return Sealed{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed = max(t.sealed, number+1)
	if c := &t.cycles[number&1]; c.number == number+1 {
		return Sealed{c}
	}
	return Sealed{}
}

// Sealed is the exemplars of a sealed cycle. The zero Sealed has none.
type Sealed struct{ cycle *cycle }

// Of returns the exemplar of the spans that were counted under a key with one outcome. One
// whose Span is 0 is none.
func (s Sealed) Of(key uint32, isError bool) Exemplar {
	if s.cycle == nil {
		return Exemplar{}
	}
	at := s.cycle.find(nameOf(key, isError))
	if at < 0 {
		return Exemplar{}
	}
	return s.cycle.kept[at].Exemplar // the zero one where none is there
}
