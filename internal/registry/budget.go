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

// rowPriority ranks a value, or a whole key, by its history in the previous interval, the highest priority
// first. Each budget is divided into one share per priority. A value takes a row from the share of its own
// priority, or, if that is used up, from the share of any lower one.
type rowPriority uint8

const (
	priorityStable rowPriority = iota // had a row and recurred, in each of the last two intervals
	priorityRecent                    // had a row and recurred, in the previous interval only
	prioritySeen                      // recurred without a row, or recurs in the first interval of its origin
	priorityNew                       // any other value

	maskShare // not the priority of a value: a share of the rows that only masks can take

	shareCount = int(maskShare) + 1
)

// history is what an interval records about a value, or a whole key, that has a row.
type history struct {
	nextPriority rowPriority // priority in the next interval, if it recurs: stable or recent
	recurred     bool        // used at least twice in this interval
}

// budget limits the rows for the values of one label, or for the tags with one tag key. When an
// interval begins, it is divided into shares:
//
//	priorityStable  one row for each stable value, at most fifteen sixteenths of the limit
//	prioritySeen    half of the remaining rows, for values that recurred in the previous interval
//	priorityRecent  one row for each recent value, from the other half of the remaining rows
//	priorityNew     the rest of that half, for any value; a sixteenth of the limit if the half is that large
//	maskShare       an eighth of the rows of priorityNew, for masks
//
// An origin without a previous interval has no rows to keep. Its prioritySeen share is for values that
// recur in the current interval. Masks hold at most a quarter of the limit.
//
// Free rows only become fewer during an interval. Therefore a value that gets no row at its second
// use gets none until the interval ends, and need not be looked up again.
type budget struct {
	shares   [shareCount]share
	masks    int // rows taken by masks
	maxMasks int
	demand   *labelDemand // number of values that the label has; nil if none was lost
}

// share is the part of a budget that belongs to one priority.
type share struct{ limit, taken int }

func (s *share) hasFree() bool { return s.taken < s.limit }

// keptRows counts the values, or the bytes of values, that had a row and recurred in the previous
// interval.
type keptRows struct{ stable, recent int }

func (r keptRows) total() int { return r.stable + r.recent }

func (r *keptRows) add(priority rowPriority, n int) {
	if priority == priorityStable {
		r.stable += n
	} else {
		r.recent += n
	}
}

// maxKept returns how much of a budget can be kept for recurring values: fifteen sixteenths.
func maxKept(limit int) int { return limit - (limit+15)/16 }

// newBudget divides limit, a number of rows, into one share per priority. priorityStable gets the rows that were
// kept for two intervals. Half of the rest goes to prioritySeen. The other half goes to priorityRecent, for the
// rows kept for one interval, and to priorityNew, which gets at least a sixteenth of limit if there is that much.
func newBudget(limit int, kept keptRows) (b budget) {
	stable := min(kept.stable, maxKept(limit))
	remaining := limit - stable
	seen := remaining / 2
	recentAndNew := remaining - seen
	leastNew := limit - maxKept(limit) // a sixteenth
	maxRecent := max(0, recentAndNew-leastNew)
	recent := min(kept.recent, maxRecent)
	b.shares[priorityStable].limit = stable
	b.shares[prioritySeen].limit = seen
	b.shares[priorityRecent].limit = recent
	b.shares[priorityNew].limit = recentAndNew - recent
	return b
}

// reserveForMasks lets masks, texts that replace several similar values, take up to a quarter of the
// limit. An eighth of the limit for new values is from now on for masks only.
func (b *budget) reserveForMasks(limit int) {
	b.maxMasks = limit / 4
	newValues := &b.shares[priorityNew]
	eighth := (newValues.limit + 7) / 8 // rounded up
	reserved := min(eighth, b.maxMasks)
	b.shares[maskShare].limit = reserved
	newValues.limit -= reserved
}

// findShareWithFreeRow returns the index in b.shares of a share, a part of the budget, that has a free row for
// a value. It tries the share of the value's priority first, and then those of lower priorities. It returns
// false if none of them has a free row, or if there are too many masks. pending contains the labels of the
// current key that are new. The rows that they will take are not free.
func (b *budget) findShareWithFreeRow(
	priority rowPriority, isMask bool, pending []pendingLabel,
) (share rowPriority, ok bool) {
	lowest := priorityNew
	if isMask {
		lowest = maskShare
	}
	if isMask && b.masks >= b.maxMasks {
		return 0, false
	}
	for share = priority; share <= lowest; share++ {
		rows := b.shares[share]
		if rows.hasFree() && rows.taken+b.countPending(pending, share) < rows.limit {
			return share, true
		}
	}
	return 0, false
}

// countPending returns how many of the pending labels, the new labels of the current key, will take a row of
// a share of the budget.
func (b *budget) countPending(pending []pendingLabel, share rowPriority) int {
	count := 0
	for i := range pending {
		if pending[i].budget == b && pending[i].share == share {
			count++
		}
	}
	return count
}

// findFree is findShareWithFreeRow for a budget of keys, bytes or origins, which no mask and no pending label
// uses.
func (b *budget) findFree(priority rowPriority) (share rowPriority, ok bool) {
	const isMask = false
	return b.findShareWithFreeRow(priority, isMask, nil)
}

// take takes a row from the share that findShareWithFreeRow returned.
func (b *budget) take(share rowPriority, isMask bool) {
	b.shares[share].taken++
	if isMask {
		b.masks++
	}
}
