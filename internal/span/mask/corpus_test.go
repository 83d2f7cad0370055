package mask_test

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

const (
	hitsAnApp  = 5_000
	leastRight = 0.9 // of the hits of routes with identifiers
)

// TestTheCorpus masks the traffic of every application, for two orders of how frequent the
// routes are.
//
// A name is a route with one choice of its few values: what a router tells apart, and a person.
// But a piece of a route, or a few value, that has a digit in it looks like an identifier, and a
// value in a query is one: names that differ in nothing else are one.
//
// A hit of a route with identifiers is right when its mask has a placeholder for each of them
// and all else as it is. Where two masks stand for one route, only hits of the more frequent one
// count. Words that vary (kind slug) are never masked, so all of their hits are wrong.
//
// A false merge is a hit whose mask is also that of another name.
func TestTheCorpus(t *testing.T) {
	routes, hits, right := 0, 0, 0
	apps := readApps(t)
	for _, a := range apps {
		routes += len(a.routes)
		nameOf, appHits, appRight := map[string]string{}, 0, 0
		for _, seed := range []uint64{1, 20} {
			h, r := judge(t, newTraffic(a, seed), nameOf)
			appHits, appRight = appHits+h, appRight+r
		}
		t.Logf("%-14s %3d routes, right %6.2f %%", a.name, len(a.routes),
			100*float64(appRight)/float64(max(1, appHits)))
		hits, right = hits+appHits, right+appRight
	}
	share := float64(right) / float64(hits)
	t.Logf("%d applications, %d routes, %d hits: right %.2f %%", len(apps), routes, hits, 100*share)
	if share < leastRight {
		t.Errorf("%.2f %% of hits are under the right route", 100*share)
	}
	if len(apps) < 15 || routes < 400 {
		t.Errorf("the corpus has %d routes of %d applications", routes, len(apps))
	}
}

// judge counts hits of routes with identifiers, and those whose mask is right. It reports false
// merges.
func judge(t *testing.T, traffic *traffic, nameOf map[string]string) (hits, right int) {
	t.Helper()
	patterns, rightOf, told := map[string]*regexp.Regexp{}, map[string]map[string]int{}, map[string]bool{}
	for range hitsAnApp {
		h := traffic.next()
		text := masked(h.value)
		if other, is := nameOf[text]; is && other != h.route && !told[text] {
			told[text] = true
			t.Errorf("%s: %s and %s are both %s", traffic.name, other, h.route, text)
		}
		nameOf[text] = h.route
		if !h.hasIdentifier {
			continue
		}
		hits++
		if patterns[h.expect] == nil {
			patterns[h.expect], rightOf[h.expect] = regexp.MustCompile("^"+h.expect+"$"), map[string]int{}
		}
		if patterns[h.expect].MatchString(text) {
			rightOf[h.expect][text]++
		}
	}
	for _, texts := range rightOf {
		if len(texts) > 0 {
			right += slices.Max(slices.Collect(maps.Values(texts)))
		}
	}
	return hits, right
}
