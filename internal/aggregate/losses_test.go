package aggregate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// checkLosses expects that the key of a snapshot differs from the original only in the labels that
// its admission reports as lost. The tests of the registry cover which ones these are.
func checkLosses(t *testing.T, sent, counted span.Key, lost registry.LabelSet) {
	t.Helper()
	for l := range span.FirstList {
		want := *sent.Text(l)
		if lost.Has(l) || lost.Has(span.WholeKey) {
			want = span.Blocked
		}
		if got := *counted.Text(l); got != want {
			t.Errorf("%s is %q, want %q", l, got, want)
		}
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		got, may := *counted.Tags(l), slices.Clone(*sent.Tags(l))
		switch {
		case lost.Has(span.WholeKey):
			may = []string{span.Blocked}
		case !lost.Has(l):
			if !slices.Equal(slices.Compact(slices.Clone(got)), slices.Compact(may)) {
				t.Errorf("%s is %q, want %q", l, got, may)
			}
		default:
			for _, tag := range may {
				name, _, _ := strings.Cut(tag, ":")
				may = append(may, name+":"+span.Blocked, span.Blocked)
			}
		}
		for _, tag := range got {
			if !slices.Contains(may, tag) {
				t.Errorf("%s is %q, of %q", l, got, *sent.Tags(l))
			}
		}
	}
}

// randomKey returns a normalized key. It has so few values that keys recur, and more than the
// budgets of the test.
func randomKey(rnd *rand.Rand) span.Key {
	pick := func(prefix string, of int) string {
		switch n := rnd.IntN(of); n {
		case 0:
			return ""
		case 1:
			return span.Blocked
		default:
			return fmt.Sprint(prefix, n)
		}
	}
	tags := func(most int) (list []string) {
		for range rnd.IntN(most + 1) {
			name := fmt.Sprint("name", rnd.IntN(3))
			if rnd.IntN(100) == 0 {
				name = fmt.Sprint("name", rnd.IntN(200))
			}
			switch rnd.IntN(12) {
			case 0:
				list = append(list, name)
			case 1:
				list = append(list, name+":"+span.Blocked)
			case 2:
				list = append(list, span.Blocked)
			default:
				list = append(list, fmt.Sprint(name, ":", rnd.IntN(8)))
			}
		}
		slices.Sort(list)
		return list
	}
	k := span.Key{
		Service: pick("s", 6), Operation: pick("o", 6), Resource: pick("r", 30), Kind: pick("k", 5),
		TraceRoot: span.TraceRoot(rnd.IntN(3)), Synthetics: rnd.IntN(9) == 0,
	}
	if rnd.IntN(3) == 0 {
		k.Type, k.HTTPMethod, k.HTTPEndpoint, k.GRPCStatus, k.ServiceSource = pick("t", 5), pick("m", 5),
			pick("e", 9), pick("g", 5), pick("s", 5)
		k.HTTPStatus = 200 + rnd.Uint32N(3)
		k.AdditionalTags = tags(span.MaxAdditionalTags)
	}
	if rnd.IntN(2) == 0 {
		k.PeerTags = tags(3)
	}
	return k
}
