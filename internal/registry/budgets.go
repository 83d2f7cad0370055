package registry

import (
	"sync/atomic"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Budgets is the number of distinct values that each label may have, an origin and
// interval. Of a list of tags it is that of each tag key.
type Budgets [span.LabelCount]int

// DefaultBudgets are those of the table of labels.
func DefaultBudgets() (b Budgets) {
	for l := range span.WholeKey {
		b[l] = l.Budget()
	}
	return b
}

// MaxTagKeys bounds the distinct tag keys that one origin can have budgets for, in
// each of the two lists. Tags beyond it collapse whole, key and all, since their
// keys are then what is unbounded.
const MaxTagKeys = 64

// budgets is what one interval's origins have used up of their budgets, and the texts
// that they were charged for. The Registry's lock guards it.
type budgets struct {
	limits    *Budgets
	labels    labelTable
	tagKeys   []tagKey
	used      []usage                 // by OriginID
	exhausted []exhausted             // by OriginID, of all that there may be
	lost      [span.LabelCount]uint64 // keys that lost a label; tags under their tag key where there is one
}

// usage is how many distinct values an origin has: of a text itself, of a list tag keys.
type usage [span.LabelCount]int

// tagKey is a tag key that has a budget.
type tagKey struct {
	id      labelID
	list    span.Label
	used    int     // distinct tags with this key
	blocked labelID // of the tag with this key and span.Blocked, once a key has it
	lost    uint64  // keys that lost a tag with this key
}

const tagKeyBytes = int(unsafe.Sizeof(tagKey{}))

// report adds what a publisher has counted.
func (b *budgets) report(lost *losses) {
	for l, keys := range lost.labels {
		b.lost[l] += keys
	}
	for _, tag := range lost.tagKeys {
		b.tagKeys[tag.index].lost += tag.keys
	}
}

// use counts one more value of a label, of as many as it may have.
func (b *budgets) use(origin OriginID, l span.Label, limit int) {
	used := &b.used[origin][l]
	if *used++; *used >= limit {
		b.exhausted[origin].set(l)
	}
}

// exhausted is which budgets an origin has used up in this interval: of a text, that it
// has as many values as it may have; of a list, that it has as many tag keys; and
// span.WholeKey, that there is no row for one more key.
//
// The Registry's lock guards its writing; Lookup reads without. Bits are only ever set.
// A bit is set after the last admitted value is findable, so a reader that sees the bit
// and then doesn't find the value knows that it was not admitted and won't be.
type exhausted struct {
	bits     atomic.Uint32 // a Collapsed
	overflow Admission     // with span.WholeKey: what keys without a row get
}

func (e *exhausted) load() Collapsed { return Collapsed(e.bits.Load()) }

func (e *exhausted) set(l span.Label) { e.bits.Or(uint32(setOf(l))) }
