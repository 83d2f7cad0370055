package registry

import (
	"slices"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// collapses adds up, over intervals and by name, the keys that lost a label. It is what
// a person wants to know of a flood, and an approximate answer will do: beyond
// maxCollapses names the other tag keys stand under their list.
type collapses struct {
	mu   sync.Mutex
	keys map[string]uint64 // by name of the label, or name of the list and tag key
}

// maxCollapses bounds the names, which tracers choose.
const maxCollapses = 256

func newCollapses() collapses { return collapses{keys: map[string]uint64{}} }

// take adds what an interval has counted so far, and takes it from there.
func (c *collapses) take(r *Registry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	b := &r.budgets
	for l, keys := range b.lost {
		name := span.Label(l).String()
		c.add(name, name, keys)
	}
	b.lost = [span.LabelCount]uint64{}
	for i := range b.tagKeys {
		key := &b.tagKeys[i]
		if key.lost > 0 { // there are thousands of them, and a name is a new text
			list := key.list.String()
			c.add(list+" "+b.labels.at(key.id).text, list, key.lost)
			key.lost = 0
		}
	}
}

func (c *collapses) add(name, orElse string, keys uint64) {
	if keys == 0 {
		return
	}
	if _, known := c.keys[name]; !known && len(c.keys) >= maxCollapses {
		name = orElse
	}
	c.keys[name] += keys
}

// most returns the name under which most keys stand, and forgets all.
func (c *collapses) most() (name string, keys uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, k := range c.keys {
		if k > keys || k == keys && n < name {
			name, keys = n, k
		}
	}
	clear(c.keys)
	return name, keys
}

// losses counts the keys that lost a label: over its budget, or new where there was no row
// for a new key. Tags are counted by tag key where that has a budget. A key that comes
// again from a connection's own table is not counted again.
type losses struct {
	labels  [span.LabelCount]uint64
	tagKeys []tagKeyLoss // of one origin, whose tag keys are few
	next    int          // of these, the one that probably comes next
}

// tagKeyLoss is how many keys lost a tag of a tag key.
type tagKeyLoss struct {
	index uint32
	keys  uint64
}

func (l *losses) addTag(index uint32) {
	is := func(loss tagKeyLoss) bool { return loss.index == index }
	at := l.next
	if at >= len(l.tagKeys) || !is(l.tagKeys[at]) {
		at = slices.IndexFunc(l.tagKeys, is)
	}
	if at < 0 {
		at = len(l.tagKeys)
		l.tagKeys = append(l.tagKeys, tagKeyLoss{index: index})
	}
	l.tagKeys[at].keys++
	l.next = (at + 1) % len(l.tagKeys)
}

func (l *losses) isEmpty() bool {
	return len(l.tagKeys) == 0 && l.labels == [span.LabelCount]uint64{}
}

func (l *losses) clear() {
	l.labels = [span.LabelCount]uint64{}
	l.tagKeys = l.tagKeys[:0]
}

// lostLabels are the labels that one key has lost.
type lostLabels struct {
	labels []span.Label
	tags   []uint32 // by index of the tag key, where that has a budget
}

func (l *lostLabels) clear() { l.labels, l.tags = l.labels[:0], l.tags[:0] }

func (l *losses) count(lost *lostLabels) {
	for _, label := range lost.labels {
		l.labels[label]++
	}
	for _, tagKey := range lost.tags {
		l.addTag(tagKey)
	}
}
