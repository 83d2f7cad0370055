package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// losses counts, by label, the keys that lost one of its values: over its budget, or new
// where there was no row for a new key. Tags are counted by tag key where that has a
// budget. A key that comes again from a connection's own table is not counted again.
type losses struct {
	labels  [span.LabelCount]uint64
	tagKeys map[uint32]uint64 // by index of the tag key
}

func newLosses() losses { return losses{tagKeys: map[uint32]uint64{}} }

// addTag counts a lost tag of a tag key.
func (l *losses) addTag(tagKey uint32, keys uint64) { l.tagKeys[tagKey] += keys }

// add counts what others have counted.
func (l *losses) add(others *losses) {
	for label, keys := range others.labels {
		l.labels[label] += keys
	}
	for tagKey, keys := range others.tagKeys {
		l.addTag(tagKey, keys)
	}
}

func (l *losses) isEmpty() bool {
	return l.labels == [span.LabelCount]uint64{} && len(l.tagKeys) == 0
}

func (l *losses) clear() {
	l.labels = [span.LabelCount]uint64{}
	clear(l.tagKeys)
}
