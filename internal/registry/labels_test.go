package registry

import (
	"fmt"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestLabels_EqualHashes: labels with equal hashes are distinguished by text and scope.
func TestLabels_EqualHashes(t *testing.T) {
	table, ids := newLabelTable(), map[labelName]labelID{}
	for kind := range scopeKind(3) {
		for i := range 100 {
			name := labelName{scope{0, kind}, fmt.Sprint("text", i)}
			if id, ok := table.find(name, 42); ok {
				t.Fatalf("%v is label %d before it was added", name, id)
			}
			table.add(labelValue{labelName: name, hash: 42})
			ids[name] = labelID(len(table.byID) - 1)
		}
	}
	for name, want := range ids {
		if id, ok := table.find(name, 42); !ok || id != want || table.byID[id].hash != 42 {
			t.Errorf("%v is %d, %t; want %d", name, id, ok, want)
		}
	}
}

// TestKeys_EqualHashes checks that keys with equal hashes are distinguished: keys of equal length,
// and a key that is a prefix of another.
func TestKeys_EqualHashes(t *testing.T) {
	table := newRowTable()
	wordsOf := func(id KeyID) []uint32 { return []uint32{1, 2, uint32(id) / 2, 7}[:3+id%2] }
	for id := range KeyID(200) {
		if found, ok := table.find(wordsOf(id), 42); ok {
			t.Fatalf("%v is key %d before it was added", wordsOf(id), found)
		}
		table.add(wordsOf(id), 42, history{}, KeyEntry{})
	}
	for want := range KeyID(200) {
		if id, ok := table.find(wordsOf(want), 42); !ok || id != want {
			t.Errorf("%v is key %d, %t; want %d", wordsOf(want), id, ok, want)
		}
	}
}

// TestCollapses_NamesAreBounded checks that only a limited number of names of collapsed labels is
// counted, because clients choose these names.
func TestCollapses_NamesAreBounded(t *testing.T) {
	c := lostLabels{}
	for i := range 10 * maxLostLabels {
		c.add(fmt.Sprint("peer_tag ", i), "peer_tag", 1)
	}
	if label, keys := c.takeHighest(); len(c) != 0 || label != "peer_tag" || keys != 9*maxLostLabels {
		t.Errorf("%d keys of %q, of %d names", keys, label, len(c))
	}
	for i := range 10 * maxLostLabels {
		c.add(fmt.Sprint("peer_tag ", i), "peer_tag", 1)
	}
	if len(c) > maxLostLabels+span.LabelCount {
		t.Errorf("%d names are counted", len(c))
	}
}
