package traces

import (
	"fmt"
	"testing"
)

// namesLike are names, and others that are like them: with another byte in each place,
// shorter and longer ones, and ones that share both ends.
func namesLike(names []string) map[string]bool {
	all := map[string]bool{"": true}
	for _, name := range names {
		all[name] = true
		for i := range len(name) {
			all[name[:i]] = true
			all[name[:i]+"\x00"+name[i+1:]] = true
			all[name[:i]+"x"+name[i:]] = true
		}
	}
	return all
}

// lookUp is the number of a name, which both ways of looking it up agree on.
func lookUp(t *testing.T, table *nameTable, name string) uint8 {
	t.Helper()
	whole, room := table.find([]byte(name)), [headLen]byte{}
	for i := range room {
		room[i] = 'x' // as what follows a name in a body
	}
	copy(room[:], name)
	if number, isSure := table.among(headAt(&room, len(name)), len(name)); isSure && number != whole {
		t.Errorf("%q is found as %q by its head, as %q by all of it", name, table.names[number], table.names[whole])
	}
	return whole
}

// TestANameIsFoundByItselfAlone: a label is found by its name and by no other, also
// those that agree in all that is hashed.
func TestANameIsFoundByItselfAlone(t *testing.T) {
	peers := append([]string{"first.of.1.their.twins", "first.of.2.their.twins", "first.of.3.their.twins", "a"}, agentPeerTags...)
	l, ok := newLabels(peers, Labels{OfTracer: true, TraceIDs: true})
	if !ok {
		t.Fatal("refused")
	}
	want := map[string]label{}
	for at, name := range l.names {
		want[name] = label(at)
	}
	for name := range namesLike(l.names) {
		if got := label(lookUp(t, l.table, name)); got != want[name] {
			t.Errorf("%q is found as %q", name, l.names[got])
		}
	}
}

// TestAnAgentMayAskForAsManyTagsAsThereAreLabels: whatever it asks for, each name is found.
func TestAnAgentMayAskForAsManyTagsAsThereAreLabels(t *testing.T) {
	for round := range 20 {
		var peers []string
		for i := range maxLabels - int(fixedLabels) {
			peers = append(peers, fmt.Sprintf("peer.%d.of.%d", i, round))
		}
		l, ok := newLabels(peers, Labels{OfTracer: true, TraceIDs: true})
		if !ok {
			t.Fatalf("round %d: refused", round)
		}
		for _, name := range peers {
			if at := lookUp(t, l.table, name); l.names[at] != name {
				t.Errorf("%q is found as %q", name, l.names[at])
			}
		}
		if _, ok := newLabels(append(peers, "one.more"), Labels{OfTracer: true}); ok {
			t.Error("one more was taken")
		}
	}
}

// TestAFieldIsToldByItsNameAlone holds for its name as it is written, too.
func TestAFieldIsToldByItsNameAlone(t *testing.T) {
	want, names := map[string]field{}, []string{}
	for f, called := range spanFields {
		if called.name != "" {
			want[called.name] = field(f)
			names = append(names, called.name)
		}
	}
	for name := range namesLike(names) {
		if got := field(lookUp(t, fieldsByName, name)); got != want[name] {
			t.Errorf("%q is taken for %q", name, spanFields[got].name)
		}
	}
	for f, called := range spanFields {
		if called.number != 0 && fieldNumbered(uint64(called.number)) != field(f) {
			t.Errorf("number %d is not field %d", called.number, f)
		}
	}
	if fieldNumbered(0) != fieldOther || fieldNumbered(1<<32) != fieldOther {
		t.Error("a number of no field is one")
	}
}

// TestNamesThatShareAHashAreTold: in a table of as many names as there may be, of which some
// share a hash, none is surely another, and each is found.
func TestNamesThatShareAHashAreTold(t *testing.T) {
	names := []string{""}
	for i := range maxLabels - 1 {
		names = append(names, fmt.Sprint("name.", i))
	}
	table, shared := newNameTable(names), 0
	for want, name := range names[1:] {
		number, isSure := table.among(headOf(name), len(name))
		if !isSure {
			shared++
			number = table.find([]byte(name))
		}
		if int(number) != want+1 {
			t.Errorf("%q is taken for %q", name, names[number])
		}
	}
	if shared == 0 {
		t.Error("no names share a hash")
	}
}
