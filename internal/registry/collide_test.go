package registry

import (
	"fmt"
	"testing"
)

// TestTextsWithEqualHashesStayApart: a hash only says where to look. Who is there is
// decided by text and scope.
func TestTextsWithEqualHashesStayApart(t *testing.T) {
	const hash = 42
	var table labelTable
	table.init()
	ids := map[labelID]label{}
	for s := range scope(3) {
		for i := range 100 {
			text := fmt.Sprint("text", i)
			if id, ok := table.find(s, hash, text); ok {
				t.Fatalf("%q of scope %d is %+v before it was added", text, s, table.at(id))
			}
			added := label{scope: s, hash: hash, text: text}
			ids[table.add(added)] = added
		}
	}
	if len(ids) != 300 {
		t.Fatalf("%d numbers of 300 labels", len(ids))
	}
	for want, l := range ids {
		if id, ok := table.find(l.scope, hash, l.text); !ok || id != want {
			t.Errorf("%q of scope %d is %d, %t; want %d", l.text, l.scope, id, ok, want)
		}
	}
}

// TestKeysWithEqualHashesStayApart is the same of keys: of equal length, and one the
// beginning of another.
func TestKeysWithEqualHashesStayApart(t *testing.T) {
	const hash = 42
	var table rowTable
	table.init()
	wordsOf := func(id KeyID) []uint32 { return []uint32{1, 2, uint32(id) / 2, 7}[:3+id%2] }
	for id := range KeyID(200) {
		if found, _, ok := table.find(hash, wordsOf(id)); ok {
			t.Fatalf("%v is key %d before it was put", wordsOf(id), found)
		}
		table.put(id, row{hash: hash, partition: uint32(id) + 1000}, wordsOf(id))
	}
	for want := range KeyID(200) {
		if id, partition, ok := table.find(hash, wordsOf(want)); !ok || id != want || partition != uint32(want)+1000 {
			t.Errorf("%v is key %d of partition %d, %t; want %d", wordsOf(want), id, partition, ok, want)
		}
	}
}
