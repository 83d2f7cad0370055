package registry

import (
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
	published []publishedGates        // by OriginID, of all that there may be
	lost      [span.LabelCount]uint64 // keys that lost a label; tags under their tag key where there is one
}

// usage is what an origin has of each label: of a text itself, of a list tag keys.
type usage [span.LabelCount]places

// places are those of one budget.
type places struct {
	others int // that are taken by what did not repeat in the last interval
	kept   int // for what did
	filled int // of those
}

// tagKey is a tag key that has a budget.
type tagKey struct {
	id     labelID
	list   span.Label
	places places // of tags with this key
	lost   uint64 // keys that lost a tag with this key
}

const tagKeyBytes = int(unsafe.Sizeof(tagKey{}))

func isList(l span.Label) bool { return l >= span.FirstList && l < span.EndOfLists }

// report adds what a publisher has counted.
func (b *budgets) report(lost *losses) {
	for l, keys := range lost.labels {
		b.lost[l] += keys
	}
	for _, tag := range lost.tagKeys {
		b.tagKeys[tag.index].lost += tag.keys
	}
	lost.clear()
}

// join adds an origin with what it has left in the last interval.
func (b *budgets) join(left heritage) {
	var used usage
	for l := range used {
		used[l].kept = left.values[l]
	}
	b.used = append(b.used, used)
	for l := range span.WholeKey {
		b.raise(OriginID(len(b.used)-1), l)
	}
}

// take gives one of its places to a value that is findable.
func (b *budgets) take(origin OriginID, l span.Label, known sight) {
	b.used[origin][l].take(known)
	b.raise(origin, l)
}

func (b *budgets) raise(origin OriginID, l span.Label) {
	limit := b.limits[l]
	if isList(l) {
		limit = MaxTagKeys
	}
	b.published[origin].raise(l, b.used[origin][l].gate(limit))
}

// takeTag gives one of a tag key's places to a tag that is findable.
func (b *budgets) takeTag(index uint32, known sight) {
	b.tagKeys[index].places.take(known)
	b.raiseTag(index)
}

func (b *budgets) raiseTag(index uint32) {
	key := &b.tagKeys[index]
	b.labels.raise(key.id, key.places.gate(b.limits[key.list]))
}

func (p *places) take(known sight) {
	if known == repeated {
		p.filled++
	} else {
		p.others++
	}
}

func (p *places) gate(limit int) height {
	gate := height(gateOf(p.others, p.kept, limit))
	if p.filled >= p.kept {
		gate |= noneKept
	}
	return gate
}
