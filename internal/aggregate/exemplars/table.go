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

// Span is a span that may become the exemplar of its key.
type Span struct {
	Exemplar
	Cycle   uint64
	Key     uint32
	IsError bool
}

// Table holds the exemplars of the open cycles. See the package comment. A nil Table has none.
type Table struct {
	mu     sync.Mutex
	cycles [2]cycle // see memoryFor
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

// Offer stores spans as exemplars. The table keeps the slowest span with an error and the slowest span
// without an error per key. If the table is full, spans of further keys are not stored.
func (t *Table) Offer(spans iter.Seq[Span]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range spans {
		key := exemplarKey(s.Key, s.IsError)
		row := t.cycleOf(s.Cycle).findOrAdd(key)
		if row == nil {
			t.counts.NoRoom++
			continue
		}
		isFirst := row.Span == 0
		if isFirst || s.Duration > row.Duration {
			row.Exemplar = s.Exemplar
			t.counts.Taken++
		}
	}
}

// cycleOf returns the exemplars of the cycle, one export interval, with the given number. If the memory
// still contains the exemplars of an earlier cycle, cycleOf discards them.
func (t *Table) cycleOf(number uint64) *cycle {
	c := t.memoryFor(number)
	if !c.belongsTo(number) {
		c.numberPlusOne = number + 1 // 0 means that no cycle has used the memory yet
		c.rows = c.rows[:0]
		clear(c.heads)
	}
	return c
}

// memoryFor returns the memory for the exemplars of a cycle, one export interval. Cycles n and n+2 use the same memory, so
// it can still contain the exemplars of an earlier cycle.
func (t *Table) memoryFor(number uint64) *cycle { return &t.cycles[number%2] }

// Seal returns the exemplars of a cycle, one export interval. The caller must not offer more spans of this cycle. The
// result is valid until spans of cycle number+2 are offered, because that cycle uses the same memory.
func (t *Table) Seal(number uint64) Sealed {
	if t == nil {
		return Sealed{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.memoryFor(number)
	hasExemplars := c.belongsTo(number)
	if !hasExemplars {
		return Sealed{}
	}
	return Sealed{c}
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

// Bytes returns the size of the table's memory.
func (t *Table) Bytes() (bytes int64) {
	if t == nil {
		return 0
	}
	for i := range t.cycles {
		c := &t.cycles[i]
		rowBytes := cap(c.rows) * int(unsafe.Sizeof(row{}))
		headBytes := len(c.heads) * int(unsafe.Sizeof(int32(0)))
		bytes += int64(rowBytes + headBytes)
	}
	return bytes
}

// cycle is a hash table of the exemplars of one cycle. Its memory is reused.
type cycle struct {
	numberPlusOne uint64 // 0 before the first cycle
	rows          []row
	heads         []int32 // heads of lists of rows, by the low bits of their keys: index plus one
}

// belongsTo reports whether the exemplars are those of the cycle with the given number.
func (c *cycle) belongsTo(number uint64) bool { return c.numberPlusOne == number+1 }

// row is an exemplar: the slowest span of one key with an error, or without.
type row struct {
	Exemplar        // none while its Span is 0
	key      uint64 // see exemplarKey
	next     int32  // index of the next row in the list, plus one
}

// heads returns the number of lists in a cycle. Key numbers are dense, so a list has one or two rows.
func heads(limit int) int { return 1 << bits.Len(uint(limit-1)) }

// exemplarKey returns a number that identifies a key together with an outcome.
func exemplarKey(key uint32, isError bool) uint64 {
	identity := uint64(key) << 1
	if isError {
		identity++
	}
	return identity
}

// find returns the row with the given key, see exemplarKey, or nil if there is none.
func (c *cycle) find(key uint64) *row {
	next := *c.listHead(key)
	for next > 0 {
		row := &c.rows[next-1]
		if row.key == key {
			return row
		}
		next = row.next
	}
	return nil
}

// listHead returns the start of the list of rows that contains the given key.
func (c *cycle) listHead(key uint64) *int32 { return &c.heads[key&uint64(len(c.heads)-1)] }

// findOrAdd returns the row with the given key, a result of exemplarKey. If there is no such row, it adds
// one without an exemplar. It returns nil if the table has no space for another row.
func (c *cycle) findOrAdd(key uint64) *row {
	known := c.find(key)
	if known != nil {
		return known
	}
	isFull := len(c.rows) == cap(c.rows)
	if isFull {
		return nil
	}
	head := c.listHead(key) // one list for all keys with the same low bits
	c.rows = append(c.rows, row{key: key, next: *head})
	newIndex := len(c.rows) - 1
	*head = int32(newIndex + 1) // the new row is now the first in its list
	return &c.rows[newIndex]
}

// Sealed is the exemplars of a sealed cycle. The zero Sealed has none.
type Sealed struct{ cycle *cycle }

// Find returns the exemplar of a key: its slowest span with an error if isError is true, its slowest span
// without an error otherwise. It returns the zero Exemplar if the table has no such span.
func (s Sealed) Find(key uint32, isError bool) Exemplar {
	if s.cycle == nil {
		return Exemplar{}
	}
	row := s.cycle.find(exemplarKey(key, isError))
	if row == nil {
		return Exemplar{}
	}
	return row.Exemplar
}
