package exemplars

import "math/bits"

// Exemplar is a span whose trace the backend has.
type Exemplar struct {
	TraceHigh, TraceLow uint64
	Span                uint64
	Duration            uint64 // nanoseconds
	End                 int64  // nanoseconds since the Unix epoch
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

// keep makes a span the exemplar of a place, unless there is a slower one.
func (c *cycle) keep(place int32, one *Exemplar) {
	if k := &c.kept[place]; !k.isThere || one.Duration > k.Duration {
		k.Exemplar, k.isThere = *one, true
	}
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
