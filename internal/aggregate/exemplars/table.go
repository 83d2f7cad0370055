package exemplars

import (
	"iter"
	"math/bits"
	"sync"
	"unsafe"
)

// Exemplar is a span whose trace is forwarded.
type Exemplar struct {
	TraceHigh, TraceLow uint64
	Span                uint64
	Duration            uint64 // nanoseconds
	End                 int64  // nanoseconds since the Unix epoch
}

// Span is a span that is counted in a cycle under a key, and that may become its exemplar.
type Span struct {
	Exemplar
	Cycle   uint64
	Key     uint32
	IsError bool
}

// Table holds the exemplars of the open cycles. See the package comment. A nil Table has none.
type Table struct {
	mu     sync.Mutex
	cycles [2]cycle // by the low bit of their numbers: at most two are open
	counts Counts
}

// DefaultLimit is the default of the command line. MaxLimit is more than any backend stores.
const (
	DefaultLimit = 4096
	MaxLimit     = 1 << 16
)

// New returns a table for at most limit exemplars per cycle, or nil if limit is 0.
func New(limit int) *Table {
	if limit <= 0 {
		return nil
	}
	t := &Table{}
	for i := range t.cycles {
		t.cycles[i] = cycle{rows: make([]row, 0, limit), heads: make([]int32, heads(limit))}
	}
	return t
}

// Offer makes each span the exemplar of its key and outcome, unless that has a slower one.
func (t *Table) Offer(spans iter.Seq[Span]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range spans {
		r := t.at(s.Cycle).row(nameOf(s.Key, s.IsError))
		switch {
		case r == nil:
			t.counts.NoRoom++
		case r.Span == 0 || s.Duration > r.Duration:
			t.counts.Taken++
			r.Exemplar = s.Exemplar
		}
	}
}

// at returns the cycle with the given number. It first clears memory that an earlier cycle has
// used.
func (t *Table) at(number uint64) *cycle {
	c := &t.cycles[number&1]
	if c.number != number+1 {
		c.number, c.rows = number+1, c.rows[:0]
		clear(c.heads)
	}
	return c
}

// Seal returns the exemplars of a cycle to which no more spans are offered. The result is valid
// until the cycle is released.
func (t *Table) Seal(number uint64) Sealed {
	if t == nil {
		return Sealed{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := &t.cycles[number&1]; c.number == number+1 {
		return Sealed{c}
	}
	return Sealed{}
}

// Counts count the spans that were offered since New, except those that were not slower.
type Counts struct {
	Taken  uint64 // became an exemplar, until a slower one came
	NoRoom uint64 // the table was full
}

// ByResult returns the counts by the results' names in metrics, each present, also at 0.
func (c Counts) ByResult() map[string]uint64 {
	return map[string]uint64{"stored": c.Taken, "no_room": c.NoRoom}
}

// Counts returns the counts of all cycles. A nil Table has none.
func (t *Table) Counts() Counts {
	if t == nil {
		return Counts{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// Bytes returns the size of a table's memory.
func (t *Table) Bytes() (bytes int64) {
	if t == nil {
		return 0
	}
	for i := range t.cycles {
		bytes += int64(cap(t.cycles[i].rows))*int64(unsafe.Sizeof(row{})) +
			int64(len(t.cycles[i].heads))*int64(unsafe.Sizeof(int32(0)))
	}
	return bytes
}

// cycle is a hash table of the exemplars of one cycle. Its memory is reused.
type cycle struct {
	number uint64 // plus one; 0 before the first
	rows   []row
	heads  []int32 // of lists of rows by the low bits of their names: index plus one
}

// row is the exemplar of one key and outcome.
type row struct {
	Exemplar // none while its Span is 0
	name     uint64
	next     int32 // index of the next row in the list, plus one
}

// heads returns the number of lists in a cycle. Key numbers are dense, so a list has one or two rows.
func heads(limit int) int { return 1 << bits.Len(uint(limit-1)) }

// nameOf returns a number that identifies a key and outcome.
func nameOf(key uint32, isError bool) uint64 {
	name := uint64(key) << 1
	if isError {
		name++
	}
	return name
}

// find returns the row of a name, or nil.
func (c *cycle) find(name uint64) *row {
	for at := c.heads[name&uint64(len(c.heads)-1)]; at > 0; at = c.rows[at-1].next {
		if c.rows[at-1].name == name {
			return &c.rows[at-1]
		}
	}
	return nil
}

// row returns the row of a name, and adds it if necessary. It returns nil if the table is full.
func (c *cycle) row(name uint64) *row {
	if r := c.find(name); r != nil || len(c.rows) == cap(c.rows) {
		return r
	}
	head := &c.heads[name&uint64(len(c.heads)-1)]
	c.rows = append(c.rows, row{name: name, next: *head})
	*head = int32(len(c.rows)) // index of the new row plus one
	return &c.rows[len(c.rows)-1]
}

// Sealed is the exemplars of a sealed cycle. The zero Sealed has none.
type Sealed struct{ cycle *cycle }

// Of returns the exemplar of the spans that were counted under a key with one outcome. Its Span is
// 0 if no span was chosen.
func (s Sealed) Of(key uint32, isError bool) Exemplar {
	if s.cycle != nil {
		if r := s.cycle.find(nameOf(key, isError)); r != nil {
			return r.Exemplar
		}
	}
	return Exemplar{}
}
