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
	demand   *labelDemand // number of values that the label has; nil if none was lost
}

// share is the part of a budget that belongs to one class.
type share struct{ limit, taken int }

func (s *share) hasFree() bool { return s.taken < s.limit }

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

// newBudget divides limit, a number of rows, into one share per class. classStable gets the rows that were kept
// for two intervals. Half of the rest goes to classSeen. The other half goes to classRecent, for the rows kept
// for one interval, and to classNew, which gets at least a sixteenth of limit if there is that much.
func newBudget(limit int, kept keptRows) (b budget) {
	stable := min(kept.stable, maxKept(limit))
	remaining := limit - stable
	seen := remaining / 2
	recentAndNew := remaining - seen
	leastNew := limit - maxKept(limit) // a sixteenth
	recent := min(kept.recent, max(0, recentAndNew-leastNew))
	b.shares[classStable].limit = stable
	b.shares[classSeen].limit = seen
	b.shares[classRecent].limit = recent
	b.shares[classNew].limit = recentAndNew - recent
	return b
}

// reserveForMasks lets masks, texts that replace several similar values, take up to a quarter of the
// limit. An eighth of the limit for new values is from now on for masks only.
func (b *budget) reserveForMasks(limit int) {
	b.maxMasks = limit / 4
	newValues := &b.shares[classNew]
	eighth := (newValues.limit + 7) / 8 // rounded up
	reserved := min(eighth, b.maxMasks)
	b.shares[classMask].limit = reserved
	newValues.limit -= reserved
}

// find returns which share, a part of the budget, has a free row for a value: the share of the value's class or
// of a later class. It returns false if none of them has, or if there are too many masks. pending contains
// the labels of the current key that are new: their rows are not counted as taken yet.
func (b *budget) find(valueClass class, isMask bool, pending []pendingLabel) (share class, ok bool) {
	lastShare := classNew
	if isMask {
		if b.masks >= b.maxMasks {
			return 0, false
		}
		lastShare = classMask
	}
	for share = valueClass; share <= lastShare; share++ {
		rows := b.shares[share]
		if rows.hasFree() && rows.taken+b.countPending(pending, share) < rows.limit {
			return share, true
		}
	}
	return 0, false
}

// countPending returns how many of the pending labels, the new labels of the current key, will take a row of
// a share of the budget.
func (b *budget) countPending(pending []pendingLabel, share class) int {
	count := 0
	for i := range pending {
		if pending[i].budget == b && pending[i].share == share {
			count++
		}
	}
	return count
}

// findFree is find for a value that is not a mask, in a budget that no pending label uses.
func (b *budget) findFree(valueClass class) (share class, ok bool) {
	const isMask = false
	return b.find(valueClass, isMask, nil)
}

// take takes a row from the share that find returned.
func (b *budget) take(share class, isMask bool) {
	b.shares[share].taken++
	if isMask {
		b.masks++
	}
}
