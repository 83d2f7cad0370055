package template_test

import (
	"bufio"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/template"
)

const (
	blocked         = span.Blocked
	corpusIntervals = 6
	hitsAnInterval  = 5000
	leastRight      = 0.95 // of all hits
)

// TestTheCorpus sends the traffic of every application for some intervals, each with a
// budget of twice as many names as it has, and judges the name of each hit. It does so for
// two orders of how frequent the routes are.
//
// A name is a route with one choice of its few values: what a router tells apart, and a
// person. A hit counts as right when it is counted
//
//   - under its own value, where that came more than once in this interval and the one
//     before, as the values of routes without identifiers do; or
//   - under its route with a placeholder for each identifier and all else as it is. Where
//     two placeholders stand for one route, only hits of the more frequent text count.
//
// All else is wrong: tracer_blocked_value, a value that came once, a template that leaves an
// identifier in. Words that vary (kind slug) are never learnt, so all of their hits are
// wrong. The first interval, in which everything is learnt, is not counted.
//
// A false merge is a hit under a text that a hit of another name was counted under, in any
// interval, tracer_blocked_value excepted. That /plans/1 and /plans/2 become one is a false
// merge too: they are two choices of few.
func TestTheCorpus(t *testing.T) {
	all := verdict{merged: map[string]bool{}}
	routes := 0
	apps := readApps(t)
	for _, a := range apps {
		v := judge(a, 1)
		v.add(judge(a, 20))
		t.Logf("%-14s %3d routes %4d names  right %6.2f %%  false merges %d", a.name, len(a.routes), v.names, 100*v.share(), v.merges)
		for text := range v.merged {
			t.Errorf("%s: hits of two names were counted under %s", a.name, text)
		}
		all.add(v)
		routes += len(a.routes)
	}
	t.Logf("%d applications, %d routes, %d hits: right %.2f %%, false merges %d", len(apps), routes, all.hits, 100*all.share(), all.merges)
	if all.share() < leastRight {
		t.Errorf("%.2f %% of hits are under the right route", 100*all.share())
	}
	if len(apps) < 15 || routes < 400 {
		t.Errorf("the corpus has %d routes of %d applications", routes, len(apps))
	}
}

type verdict struct {
	names, hits, right, merges int
	merged                     map[string]bool
}

func (v *verdict) share() float64 { return float64(v.right) / float64(v.hits) }

func (v *verdict) add(other verdict) {
	v.hits, v.right, v.merges = v.hits+other.hits, v.right+other.right, v.merges+other.merges
	maps.Copy(v.merged, other.merged)
}

func judge(a *app, seed uint64) (v verdict) {
	traffic := newTraffic(a, seed)
	n := newNamer(max(64, 2*traffic.countNames()))
	v.names, v.merged = traffic.countNames(), map[string]bool{}
	nameOf := map[string]int{}          // by text
	folded := map[int]map[string]int{}  // hits under a route's template, by name and text
	pattern := map[int]*regexp.Regexp{} // by name
	var came, before map[string]int     // hits of a value
	for interval := range corpusIntervals {
		n.begin()
		before, came = came, map[string]int{}
		for range hitsAnInterval {
			h := traffic.next()
			came[h.value]++
			text := n.name(h.value)
			if other, is := nameOf[text]; is && other != h.name && text != blocked {
				v.merges++
				v.merged[text] = true
			}
			nameOf[text] = h.name
			if interval == 0 {
				continue
			}
			v.hits++
			if text == h.value && came[h.value]+before[h.value] > 1 {
				v.right++
				continue
			}
			if pattern[h.name] == nil {
				pattern[h.name], folded[h.name] = regexp.MustCompile("^"+h.expect+"$"), map[string]int{}
			}
			if pattern[h.name].MatchString(text) {
				folded[h.name][text]++
			}
		}
	}
	for _, texts := range folded {
		most := 0
		for _, hits := range texts {
			most = max(most, hits)
		}
		v.right += most
	}
	return v
}

// namer gives values names as the daemon does.
type namer struct {
	intervals *registry.Intervals
	lookup    registry.Lookup
	origin    registry.OriginID
}

func newNamer(budget int) *namer {
	config := registry.DefaultConfig()
	config.Budgets[span.LabelResource] = budget
	return &namer{intervals: registry.NewIntervals(&config)}
}

func (n *namer) begin() {
	n.intervals.Begin()
	n.origin, _ = n.intervals.Registry().AdmitOrigin(span.Origin{Service: "corpus"})
	n.lookup.Begin(n.intervals.Registry(), n.origin)
}

func (n *namer) name(value string) string {
	key := span.Key{Service: "corpus", Operation: "serve", Resource: value}
	admission, ok := n.lookup.Admit(&key, 0, false)
	if !ok {
		key.Normalize("go")
		admission = n.intervals.Registry().Admit(n.origin, &key, false)
	}
	n.lookup.Report()
	_, keys := n.intervals.Registry().Contents()
	return keys[admission.ID].Key.Resource
}

// TestNothingIsLearntOfStaticSites sends what has no route: pages, files with hashes in
// their names, errors, years, versions, bytes. All of it is offered to the learner.
func TestNothingIsLearntOfStaticSites(t *testing.T) {
	file, err := os.Open("testdata/static.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	var values []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		values = append(values, lines.Text())
	}
	if len(values) < 100 {
		t.Fatalf("%d values were read", len(values))
	}
	rnd := rand.New(rand.NewPCG(4, 20))
	values = append(values, staticSite(rnd)...)
	templates, fold := template.New(), template.Fold{}
	for range 4 {
		templates.Begin()
		for range 3 {
			rnd.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
			for _, value := range values {
				if name, ok := fold.Name(templates, template.Scope{Origin: 1, Label: 2}, value, 5000); ok {
					t.Fatalf("%q became %q", value, name)
				}
				if sight, ok := fold.Sight(); ok {
					templates.Learn([]template.Sight{sight})
				}
			}
		}
	}
	if known := templates.Known(2); known != 0 {
		t.Errorf("%d templates were learnt of static sites", known)
	}
}

// staticSite is pages and files as generators of sites name them.
func staticSite(rnd *rand.Rand) (values []string) {
	hash, any := of("0123456789abcdef", 8), of(alphanumeric+"/?&=-_.:%{}'\"\\ \x00\xff\xc3", 0)
	for i := range 300 {
		values = append(values,
			"GET /docs/"+word(rnd)+"-"+word(rnd)+"/", "GET /blog/"+word(rnd)+"/"+word(rnd)+"-"+word(rnd)+".html",
			"GET /assets/"+word(rnd)+"-"+hash(rnd, 0)+".png", "GET /static/js/"+word(rnd)+"."+hash(rnd, 0)+".js",
			"GET /_next/static/chunks/pages/"+word(rnd)+"-"+hash(rnd, 0)+hash(rnd, 0)+".js",
			"GET /"+word(rnd)+".html", word(rnd)+"."+word(rnd)+"#"+word(rnd), any(rnd, rnd.IntN(60)),
			"SELECT * FROM "+word(rnd)+" WHERE "+word(rnd)+" IS NULL",
		)
		if i < 60 {
			number := strconv.Itoa(i)
			values = append(values, "GET /page/"+number, "GET /errors/4"+number, "GET /archive/20"+number[:1]+"4/", "GET /docs/v"+number+"/", "GET /docs/1."+number+".0/intro",
				"GET /chapter-"+number+".html", "GET /?page="+word(rnd))
		}
	}
	return values
}
