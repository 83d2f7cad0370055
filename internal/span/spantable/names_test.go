package spantable_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// namesLike returns the given names and similar ones: with another byte at each position, shorter, and longer.
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

// lookUp returns the label of a name. It fails the test if Find and FindFingerprint disagree.
func lookUp(t *testing.T, names *spantable.Names, name string) (l spantable.Label, isSure bool) {
	t.Helper()
	id := names.Find([]byte(name))
	// the bytes before and after the name in a body
	for _, around := range []string{"xxxxxxxx", "\x00\x00\x00\x00\x00\x00\x00\x00"} {
		var byEnds spantable.Label
		byEnds, isSure = names.FindFingerprint(spantable.FingerprintAt([]byte(around+name+around), len(around), len(name)))
		if isSure && byEnds != id {
			t.Errorf("%q is found as %q by its ends, as %q by all of it", name, names.Name(byEnds),
				names.Name(id))
		}
	}
	return id, isSure
}

// A similar name is not found, even if it has the same fingerprint.
func TestNames_SimilarIsNotFound(t *testing.T) {
	all := []string{
		"", "first.of.1.their.twins", "first.of.2.their.twins", "first.of.3.their.twins", "a", "ab",
		"http.url",
		"out.host", "db.instance", "db.name", "exactly.16.bytes", "a.name.of.17.byte",
		strings.Repeat("long", 60),
	}
	names, want := spantable.NewNames(all), map[string]spantable.Label{}
	for at, name := range all {
		want[name] = spantable.Label(at)
	}
	for name := range namesLike(all) {
		if got, _ := lookUp(t, names, name); got != want[name] {
			t.Errorf("%q is found as %q", name, names.Name(got))
		}
	}
}

// In a table with the maximum number of names, some of which share a slot, each name is found, and
// FindFingerprint is sure of most.
func TestNames_EqualHashes(t *testing.T) {
	all := []string{""}
	for i := range spantable.MaxLabels - 1 {
		all = append(all, fmt.Sprint("name.", i))
	}
	names, shared := spantable.NewNames(all), 0
	for want, name := range all {
		got, isSure := lookUp(t, names, name)
		if int(got) != want {
			t.Errorf("%q is found as %q", name, names.Name(got))
		}
		if !isSure {
			shared++
		}
	}
	if shared == 0 || shared > len(all)/4 {
		t.Errorf("%d of %d names share a hash", shared, len(all))
	}
	if names.Len() != len(all) {
		t.Errorf("%d names", names.Len())
	}
}

// Labels without a name are not found by the empty name.
func TestNames_EmptyFindsNone(t *testing.T) {
	names := spantable.NewNames([]string{"", "", "a"})
	if l, _ := lookUp(t, names, ""); l != spantable.Other {
		t.Errorf("the empty name has label %d", l)
	}
	if l, _ := lookUp(t, names, "a"); l != 2 {
		t.Errorf("a has label %d", l)
	}
}

// Names with the same first and last bytes in the same slot are distinguished by their length.
func TestNames_SameEndsOtherLength(t *testing.T) {
	for _, c := range "az" {
		names := spantable.NewNames([]string{"", strings.Repeat(string(c), 8)})
		for n := range 6000 { // some of them share its slot
			if l, _ := lookUp(t, names, strings.Repeat(string(c), n)); (l != spantable.Other) != (n == 8) {
				t.Errorf("%d times %q is found as %q", n, c, names.Name(l))
			}
		}
	}
}
