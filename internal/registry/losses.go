package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// losses counts the keys that lost a label: over its budget, or new where there was no row
// for a new key. Tags are counted by tag key where that has a budget. A key that comes
// again from a connection's own table is not counted again.
type losses struct {
	labels  [span.LabelCount]uint64
	tagKeys []tagKeyLoss // of one origin, whose tag keys are few
}

// tagKeyLoss is how many keys lost a tag of a tag key.
type tagKeyLoss struct {
	index uint32
	keys  uint64
}

func (l *losses) addTag(index uint32) {
	for i := range l.tagKeys {
		if l.tagKeys[i].index == index {
			l.tagKeys[i].keys++
			return
		}
	}
	l.tagKeys = append(l.tagKeys, tagKeyLoss{index, 1})
}

func (l *losses) isEmpty() bool {
	return len(l.tagKeys) == 0 && l.labels == [span.LabelCount]uint64{}
}

func (l *losses) clear() {
	l.labels = [span.LabelCount]uint64{}
	l.tagKeys = l.tagKeys[:0]
}
