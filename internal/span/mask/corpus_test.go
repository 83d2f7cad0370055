package mask_test

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

const (
	hitsAnApp  = 5_000
	leastRight = 0.9 // minimum share of the requests to routes with identifiers
)

// TestMasks_Corpus masks the traffic of every application in testdata, for two orders of how frequent the
// routes are.
//
// A name is a route together with one choice of its enumerated values, which a router and a reader
// distinguish. But a piece of a route, or an enumerated value, that contains a digit looks like an
// identifier, and so does every value in a query. Names that differ only in such pieces count as one.
//
// The mask of a request to a route with identifiers is correct if it has a placeholder for each of them and
// keeps everything else. If a route has two masks, only requests with the more frequent one count as
// correct. Varying words (kind slug) are never masked, so requests with them count as wrong.
//
// A false merge is a request whose mask is also the mask of another name.
func TestMasks_Corpus(t *testing.T) {
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

// judge returns the number of requests to routes with identifiers, and of those with a correct mask. It fails the
// test for false merges.
func judge(t *testing.T, traffic *traffic, nameOf map[string]string) (hits, right int) {
	t.Helper()
	patterns, rightOf, reported := map[string]*regexp.Regexp{}, map[string]map[string]int{}, map[string]bool{}
	for range hitsAnApp {
		h := traffic.next()
		text := masked(h.value)
		if other, is := nameOf[text]; is && other != h.route && !reported[text] {
			reported[text] = true
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
