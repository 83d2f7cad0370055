package traces

import (
	"bytes"
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

// TestFinder: a label is found by its name and by no other, wherever the name lies, in
// the quick way as in the other; also those that share both of their ends.
func TestFinder(t *testing.T) {
	peers := append([]string{"first.of.1.their.twins", "first.of.2.their.twins", "first.of.3.their.twins", "a"}, agentPeerTags...)
	l, ok := newLabels(peers)
	if !ok {
		t.Fatal("refused")
	}
	want := map[string]label{}
	for at, name := range l.names {
		want[name] = label(at)
	}
	for name := range namesLike(l.names) {
		if got := l.find([]byte(name)); got != want[name] {
			t.Errorf("%q is found as %q", name, l.names[got])
		}
		if len(name) >= 32 {
			continue
		}
		body := append(append(bytes.Repeat([]byte{0xff}, 16), name...), bytes.Repeat([]byte{0xff}, ahead)...)
		first, last := endsAt(startOf(body), 16, len(name))
		if got := l.exactly(l.among(len(name), first, last), []byte(name)); got != want[name] {
			t.Errorf("%q is found as %q, quickly", name, l.names[got])
		}
	}
}

// TestFinderTakesAsManyAsThereCanBe: whatever an agent asks for, each name has a slot.
func TestFinderTakesAsManyAsThereCanBe(t *testing.T) {
	for round := range 20 {
		var peers []string
		for i := range maxLabels - int(fixedLabels) {
			peers = append(peers, fmt.Sprintf("peer.%d.of.%d", i, round))
		}
		l, ok := newLabels(peers)
		if !ok {
			t.Fatalf("round %d: refused", round)
		}
		for _, name := range peers {
			if at := l.find([]byte(name)); l.names[at] != name {
				t.Errorf("%q is found as %q", name, l.names[at])
			}
		}
		if _, ok := newLabels(append(peers, "one.more")); ok {
			t.Error("one more was taken")
		}
	}
}

// TestLeads: a field is told by its name, head and all, and by nothing that is like it.
func TestLeads(t *testing.T) {
	var written []string
	for _, name := range fieldNames {
		written = append(written, string(rune(0))+name)
	}
	want := map[string]field{}
	for f, name := range fieldNames[1:] {
		written[f+1] = string(append([]byte{0xa0 | byte(len(name))}, name...))
		want[written[f+1]] = field(f + 1)
		if fieldNamed([]byte(name)) != field(f+1) {
			t.Errorf("%q is no field", name)
		}
	}
	for name := range namesLike(written[1:]) {
		body := append([]byte(name), bytes.Repeat([]byte{0xff}, ahead)...)
		for f := range leads {
			if leads[f].is(startOf(body), 0) && want[name[:min(len(name), int(leads[f].n))]] != field(f) {
				t.Errorf("%q is taken for %q", name, fieldNames[f])
			}
		}
		if f := want[name]; f != 0 && !leads[f].is(startOf(body), 0) {
			t.Errorf("%q is not known", name)
		}
	}
}
