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

// MaxTagKeys limits the number of distinct tag keys per origin that have a budget, for each of the
// two lists of tags. Tags with further keys collapse with their key, because keys that exceed the
// limit are unbounded, too.
const MaxTagKeys = 64

// class ranks a value, or a whole key, by its history in the previous interval. Each budget is
// divided into one share per class. A value takes a row from the share of its own class, or, if
// that is used up, from the share of any later class.
type class uint8

const (
	classStable class = iota // had a row and recurred, in each of the last two intervals
	classRecent              // had a row and recurred, in the previous interval only
	classSeen                // recurred without a row, or recurs in the first interval of its origin
	classNew                 // any other value

	classMask // not the class of a value: a share of the rows that only masks can take

	classes = int(classMask) + 1
)

// history is what an interval records about a value, or a whole key, that has a row.
type history struct {
	nextClass class // class in the next interval, if it recurs: stable or recent
	recurred  bool  // used at least twice in this interval
}

// budget limits the rows for the values of one label, or for the tags with one tag key. When an
// interval begins, it is divided into shares:
//
//	classStable  one row for each stable value, at most fifteen sixteenths of the limit
//	classSeen    half of the remaining rows, for values that recurred in the previous interval
//	classRecent  up to the other half except for a sixteenth of the limit, for values that had a
//	             row and recurred
//	classNew     the rest of the other half, for any value
//	classMask    an eighth of the rows of classNew, for masks
//
// An origin without a previous interval has no rows to keep. Its classSeen share is for values that
// recur in the current interval. Masks hold at most a quarter of the limit.
//
// Free rows only become fewer during an interval. Therefore a value that gets no row at its second
// use gets none until the interval ends, and need not be looked up again.
type budget struct {
	shares   [classes]share
	masks    int // rows taken by masks
	maxMasks int
}

type share struct{ limit, taken int }

func (p *share) hasFree() bool { return p.taken < p.limit }

// keptRows counts the values, or the bytes of values, that had a row and recurred in the previous
// interval.
type keptRows struct{ stable, recent int }

func (r keptRows) total() int { return r.stable + r.recent }

func (r *keptRows) add(class class, n int) {
	if class == classStable {
		r.stable += n
	} else {
		r.recent += n
	}
}

// maxKept returns how much of a budget can be kept for recurring values: fifteen sixteenths.
func maxKept(limit int) int { return limit - (limit+15)/16 }

// newBudget divides a limit into shares. kept is the number of values that keep their row. hasMasks
// reports whether masks can take rows of this budget.
func newBudget(limit int, kept keptRows, hasMasks bool) (b budget) {
	kept.stable = min(kept.stable, maxKept(limit))
	remaining := limit - kept.stable
	half := (remaining + 1) / 2
	b.shares[classStable].limit = kept.stable
	b.shares[classSeen].limit = remaining - half
	b.shares[classRecent].limit = min(kept.recent, max(0, half-(limit+15)/16))
	b.shares[classNew].limit = half - b.shares[classRecent].limit
	if hasMasks {
		b.maxMasks = limit / 4
		b.shares[classMask].limit = min((b.shares[classNew].limit+7)/8, b.maxMasks)
		b.shares[classNew].limit -= b.shares[classMask].limit
	}
	return b
}

// find returns the first share, from the class of a value on, that has a free row. pending returns
// how many rows of a share other labels of the same key are about to take. find returns false if
// the budget has no row for the value.
func (b *budget) find(class class, isMask bool, pending func(*budget, class) int) (class, bool) {
	last := classNew
	if isMask {
		if b.masks >= b.maxMasks {
			return 0, false
		}
		last = classMask
	}
	for from := class; from <= last; from++ {
		if share := &b.shares[from]; share.hasFree() && share.taken+pending(b, from) < share.limit {
			return from, true
		}
	}
	return 0, false
}

func (b *budget) take(from class, isMask bool) {
	b.shares[from].taken++
	if isMask {
		b.masks++
	}
}

// noPending is the pending argument of find for a key that takes at most one row of the budget.
func noPending(*budget, class) int { return 0 }
