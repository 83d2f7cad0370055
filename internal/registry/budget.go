package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// Budgets is the number of distinct values that each label may have, per origin and
// interval. In a list of tags it is the number per tag key.
type Budgets [span.LabelCount]int

// DefaultBudgets returns the budgets of the table of labels.
func DefaultBudgets() (b Budgets) {
	for l := range span.WholeKey {
		b[l] = l.Budget()
	}
	return b
}

// MaxTagKeys bounds the distinct tag keys that one origin can have budgets for, in
// each of the two lists. Tags beyond it collapse whole, key and all, because then
// the keys themselves are unbounded.
const MaxTagKeys = 64

// recurrence is what the previous interval tells about a value or a whole key. It is also the
// first of the parts of a budget that the value may take a row from: if that part is used up,
// the value may take a row from any later part.
type recurrence uint8

const (
	steady recurrence = iota // had a row and recurred, and recurred in the interval before, too
	held                     // had a row and recurred
	seen                     // recurred without a row, or came before in the first interval of its origin
	open                     // anything else

	maskOnly // no recurrence: open rows that only masks may take

	parts = int(maskOnly) + 1
)

// history is what an interval notes of a value, or a whole key, that has a row.
type history struct {
	next     recurrence // in the next interval, if it recurs: steady or held
	recurred bool       // it came at least twice
}

// budget is the rows for the values of one label, or for the tags of one tag key. It is
// divided when the interval begins:
//
//	steady    a row for each steady value, up to fifteen sixteenths of the limit
//	seen      half of the rest, for values that recurred in the previous interval
//	held      the other half, except for a sixteenth of the limit, for values that had a row
//	          and recurred, as far as there are
//	open      what remains of the other half, for anything
//	maskOnly  an eighth of the open rows, for masks
//
// An origin without a previous interval has nothing to keep. There, the second part is for values
// that came before in this interval. Masks hold at most a quarter of the limit.
//
// A value that finds no row when it comes for the second time finds none until the interval ends,
// because free rows only become fewer. Therefore it need not be looked up again.
type budget struct {
	parts    [parts]part
	masks    int // rows taken by masks
	maxMasks int
}

type part struct{ limit, taken int }

func (p *part) isOpen() bool { return p.taken < p.limit }

// recurring is how many values, or bytes, had a row and recurred in the previous interval.
type recurring struct{ steady, held int }

func (r recurring) total() int { return r.steady + r.held }

func (r *recurring) add(known recurrence, n int) {
	if known == steady {
		r.steady += n
	} else {
		r.held += n
	}
}

// mostRecurring is as much of a budget as recurring values may keep.
func mostRecurring(limit int) int { return limit - (limit+15)/16 }

func newBudget(limit int, kept recurring, hasMasks bool) (b budget) {
	kept.steady = min(kept.steady, mostRecurring(limit))
	rest := limit - kept.steady
	half := (rest + 1) / 2
	b.parts[steady].limit = kept.steady
	b.parts[seen].limit = rest - half
	b.parts[held].limit = min(kept.held, max(0, half-(limit+15)/16))
	b.parts[open].limit = half - b.parts[held].limit
	if hasMasks {
		b.maxMasks = limit / 4
		b.parts[maskOnly].limit = min((b.parts[open].limit+7)/8, b.maxMasks)
		b.parts[open].limit -= b.parts[maskOnly].limit
	}
	return b
}

// find returns the part that has a row for a value, if one has. Pending returns how many rows
// of a part other labels of the same key are about to take.
func (b *budget) find(known recurrence, isMask bool, pending func(*budget, recurrence) int) (recurrence, bool) {
	last := open
	if isMask {
		if last = maskOnly; b.masks >= b.maxMasks {
			return 0, false
		}
	}
	for ; known <= last; known++ {
		if p := &b.parts[known]; p.isOpen() && p.taken+pending(b, known) < p.limit {
			return known, true
		}
	}
	return 0, false
}

func (b *budget) take(from recurrence, isMask bool) {
	b.parts[from].taken++
	if isMask {
		b.masks++
	}
}

// alone is the answer for a key that brings only one value to a budget.
func alone(*budget, recurrence) int { return 0 }
