package exemplars

import (
	"sync"
	"unsafe"
)

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

// at is the cycle of a number, begun if it is the first time.
func (t *Table) at(number uint64) *cycle {
	c := &t.cycles[number&1]
	if c.number != number+1 {
		c.number, c.kept = number+1, c.kept[:0]
		clear(c.heads)
	}
	return c
}

// Body is a body whose spans are proposed, while the table's lock is held.
type Body struct {
	table *Table
	list  Candidates
}

// Choose has the spans of one body proposed, and returns what is to be resolved when the
// agent has answered.
func (t *Table) Choose(body func(*Body)) Candidates {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bodies++
	t.body = Body{table: t}
	body(&t.body)
	return t.body.list
}

// Propose proposes a span that is counted in a cycle under a key. Where it is slower than the
// exemplar that there is, and than this body's candidate, it returns where the exemplar is to
// be written, else nil. The result is valid until the next call.
func (b *Body) Propose(number uint64, key uint32, isError bool, duration uint64) *Exemplar {
	t := b.table
	k, place := t.at(number).place(nameOf(key, isError))
	switch {
	case k == nil:
		t.counts.NoRoom++
		return nil
	case k.isThere && duration <= k.Duration:
		return nil
	case k.body == t.bodies:
		if before := &t.candidates.all[k.candidate].Exemplar; duration > before.Duration {
			return before
		}
		return nil
	}
	at := t.candidates.add()
	if at < 0 {
		t.counts.NoRoom++
		return nil
	}
	k.body, k.candidate = t.bodies, at
	t.candidates.all[at] = candidate{cycle: number, place: place, next: b.list.first}
	b.list.first = at + 1
	return &t.candidates.all[at].Exemplar
}

// Resolve ends a body's candidates. Where the agent has taken the body, the slowest become
// exemplars, unless their cycle was sealed meanwhile.
func (t *Table) Resolve(list Candidates, isTaken bool) {
	if list.first == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for at := list.first - 1; at >= 0; {
		one := t.candidates.all[at]
		switch c := &t.cycles[one.cycle&1]; {
		case !isTaken:
			t.counts.Refused++
		case one.cycle < t.sealed || c.number != one.cycle+1:
			t.counts.Late++
		default:
			t.counts.Taken++
			c.keep(one.place, &one.Exemplar)
		}
		t.candidates.remove(at)
		at = one.next - 1
	}
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

// Counts are those of all cycles. A nil Table has none.
func (t *Table) Counts() Counts {
	if t == nil {
		return Counts{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// Bytes is what a table takes.
func (t *Table) Bytes() (bytes int64) {
	if t == nil {
		return 0
	}
	for i := range t.cycles {
		bytes += int64(cap(t.cycles[i].kept))*int64(unsafe.Sizeof(kept{})) +
			int64(len(t.cycles[i].heads))*int64(unsafe.Sizeof(int32(0)))
	}
	return bytes + int64(cap(t.candidates.all))*int64(unsafe.Sizeof(candidate{}))
}
