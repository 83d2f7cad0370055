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

// slotPriority ranks a value, or a whole key, by its uses in earlier intervals, the highest priority first.
type slotPriority uint8

const (
	priorityStable slotPriority = iota // recurred in each of the last two intervals
	priorityRecent                     // recurred in the previous interval, in which it first got a slot
	prioritySeen                       // recurred without a slot, or recurs in the first interval of its origin
	priorityNew                        // any other value

	priorityCount = int(priorityNew) + 1
)

// history is what an interval records about a value, or a whole key, that has a slot.
type history struct {
	nextPriority slotPriority // priority in the next interval, if it recurs: stable or recent
	recurred     bool         // used at least twice in this interval
}

// budget limits the number of different values of one label, or of the tags with one tag key. Each value
// takes one slot. When an interval begins, the slots are divided into one share per priority:
//
//	priorityStable  one slot for each stable value, at most fifteen sixteenths of the limit
//	prioritySeen    half of the remaining slots, for values that recurred in the previous interval
//	priorityRecent  one slot for each recent value, from the other half of the remaining slots
//	priorityNew     the rest of that half, for any value; a sixteenth of the limit if the half is that large
//
// A value takes a slot from the share of its own priority, or, if that is used up, from the share of any lower
// one. An eighth of the slots of priorityNew is for masks only. Masks hold at most a quarter of the limit.
//
// An origin without a previous interval has no values to keep. Its prioritySeen share is for values that
// recur in the current interval.
//
// From one key to the next, free slots only become fewer. Therefore a value that gets no slot at its second use
// gets none until the interval ends, and need not be looked up again.
type budget struct {
	shares    [priorityCount]slots // by priority
	maskShare slots                // slots that only masks can take
	masks     slots                // number of masks in all shares, and its limit
	demand    *labelDemand         // measures how many values the label has; nil if none was lost
}

// slots is a number of slots, of which some are taken.
type slots struct{ limit, taken int }

func (s *slots) hasFree() bool { return s.taken < s.limit }

// keptCount counts the values, or the bytes of values, that keep their slots in the next interval, by
// priority.
type keptCount struct{ stable, recent int }

func (c keptCount) total() int { return c.stable + c.recent }

func (c *keptCount) add(priority slotPriority, n int) {
	if priority == priorityStable {
		c.stable += n
	} else {
		c.recent += n
	}
}

// maxKept returns how much of a budget can be kept for recurring values: fifteen sixteenths.
func maxKept(limit int) int { return limit - sixteenth(limit) }

// sixteenth returns a sixteenth of n, rounded up.
func sixteenth(n int) int { return (n + 15) / 16 }

// newBudget returns a budget of limit slots, given how many values keep their slots. It divides the slots into
// shares as described at budget.
func newBudget(limit int, kept keptCount) (b budget) {
	stable := min(kept.stable, maxKept(limit))
	remaining := limit - stable
	seen := remaining / 2
	recentAndNew := remaining - seen
	maxRecent := max(0, recentAndNew-sixteenth(limit)) // leaves a sixteenth of limit for new values
	recent := min(kept.recent, maxRecent)

	b.shares[priorityStable].limit = stable
	b.shares[prioritySeen].limit = seen
	b.shares[priorityRecent].limit = recent
	b.shares[priorityNew].limit = recentAndNew - recent
	return b
}

// reserveForMasks lets masks, texts such as "GET /users/{id}" that replace similar values, take up to a quarter
// of the limit. It moves an eighth of the slots for new values to a share that only masks can use, so that there
// are slots for masks when new values have taken all others.
func (b *budget) reserveForMasks(limit int) {
	b.masks.limit = maxMasks(limit)
	newValues := &b.shares[priorityNew]
	eighth := (newValues.limit + 7) / 8 // rounded up
	reserved := min(eighth, b.masks.limit)
	newValues.limit -= reserved
	b.maskShare.limit = reserved
}

// maxMasks returns how many slots of a budget masks can hold.
func maxMasks(limit int) int { return limit / 4 }

// findFree returns a share of the budget that has a free slot for a value with the given priority. It returns
// nil if neither the share of this priority nor that of a lower one has any.
func (b *budget) findFree(priority slotPriority) *slots {
	shares := b.shares[priority:] // the highest priority comes first
	for i := range shares {
		if shares[i].hasFree() {
			return &shares[i]
		}
	}
	return nil
}

// findFreeForMask is findFree for a mask. A mask can also use maskShare, but the number of masks is limited.
func (b *budget) findFreeForMask(priority slotPriority) *slots {
	if !b.masks.hasFree() {
		return nil
	}
	share := b.findFree(priority)
	if share == nil && b.maskShare.hasFree() {
		return &b.maskShare
	}
	return share
}

// take takes a slot for a value with the given priority. It returns the share that the slot is from, or nil if
// no slot is free.
func (b *budget) take(priority slotPriority, isMask bool) (share *slots) {
	if isMask {
		share = b.findFreeForMask(priority)
	} else {
		share = b.findFree(priority)
	}
	if share == nil {
		return nil
	}
	share.taken++
	if isMask {
		b.masks.taken++ // masks have a limit of their own, too
	}
	return share
}

// giveBack reverts a call of take that returned share.
func (b *budget) giveBack(share *slots, isMask bool) {
	share.taken--
	if isMask {
		b.masks.taken--
	}
}
