package registry_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/mask"
)

// families are names as applications have them, by number. Many look like identifiers, or
// contain some.
var families = map[string]func(i int) string{
	"routes":  func(i int) string { return fmt.Sprintf("GET /legit/route-%d", i) },
	"codes":   func(i int) string { return fmt.Sprint("TX ", 600100+i) },
	"hosts":   func(i int) string { return fmt.Sprintf("GET http://10.0.%d.%d:8080/metrics", i/250, i%250) },
	"hashes":  func(i int) string { return fmt.Sprintf("GET /assets/app-%08x.js", 3735928000+i) },
	"queues":  func(i int) string { return fmt.Sprintf("orders.%d.created", 100000+i) },
	"uuids":   func(i int) string { return fmt.Sprintf("GET /tenants/550e8400-e29b-41d4-a716-44665544%04x", i) },
	"actions": func(i int) string { return fmt.Sprintf("POST /?Action=Describe%s&Version=2016-11-15", word(i)) },
	"kubernetes": func(i int) string {
		verb := []string{"list", "read", "create", "patch", "delete", "replace", "watch"}[i%7]
		group := []string{"CoreV1", "AppsV1", "BatchV1", "AutoscalingV2", "StorageV1beta1"}[i/7%5]
		return verb + group + "Namespaced" + word(i/35)
	},
	"sql": func(i int) string {
		return fmt.Sprintf("SELECT * FROM orders WHERE id IN (?%s) LIMIT 10", strings.Repeat(", ?", i))
	},
	"topics": func(i int) string {
		return fmt.Sprintf("billing.invoices.2026-%02d-%02d.v%d", 1+i%12, 1+i/12%28, i/336)
	},
	"models": func(i int) string {
		name := []string{"chat gpt-4o-2024-%02d-%02d", "embed text-embedding-3-large-%d-%d", "chat llama-3.%d-%db-instruct"}
		return fmt.Sprintf(name[i%3], 1+i/3%12, 1+i/36)
	},
	"tenants": func(i int) string { return fmt.Sprintf("sync tenant %s-%d", word(i), 4711*i%10000) },
}

// word is a different word for each number.
func word(i int) string {
	text := []byte{'A' + byte(i%26)}
	for i /= 26; i > 0 || len(text) < 4; i /= 26 {
		text = append(text, 'a'+byte(i%26))
	}
	return string(text)
}

// unique make values that come once.
var unique = map[string]func(*rand.Rand) string{
	"words":   func(r *rand.Rand) string { return "GET /" + letters(r) + "/" + letters(r) },
	"numbers": func(r *rand.Rand) string { return fmt.Sprint("GET /users/", r.Uint64N(1e12)) },
	"uuids": func(r *rand.Rand) string {
		return fmt.Sprintf("GET /orders/%08x-%04x-4%03x-8%03x-%012x", r.Uint32(), r.IntN(1<<16),
			r.IntN(1<<12), r.IntN(1<<12), r.Uint64()>>16)
	},
	"alike": func(r *rand.Rand) string { return fmt.Sprint("TX ", 700000+r.Uint64N(1e12)) },
	"mixed": func(r *rand.Rand) string {
		return []string{
			"GET /" + letters(r), fmt.Sprint("GET /users/", r.Uint64()),
			fmt.Sprintf("GET /%016x/%d", r.Uint64(), r.IntN(100)),
			fmt.Sprintf("SELECT * FROM t WHERE id = %d", r.Uint64()), "job " + letters(r),
		}[r.IntN(5)]
	},
}

func letters(r *rand.Rand) string {
	text := make([]byte, 12)
	for i := range text {
		text[i] = byte('a' + r.IntN(26))
	}
	return string(text)
}

// floods create values for each interval, in addition to the recurring ones. No value is used at
// least twice in two successive intervals.
var floods = func() map[string]func(r *rand.Rand, limit int) []string {
	floods := map[string]func(*rand.Rand, int) []string{
		"none": func(*rand.Rand, int) []string { return nil },
		"several times in one interval": func(r *rand.Rand, limit int) (values []string) {
			for range 2 * limit {
				value := unique["words"](r)
				values = append(values, value, value, value)
			}
			return values
		},
		"masks that come several times": func(r *rand.Rand, limit int) (values []string) {
			for range limit {
				path := letters(r)
				for range 3 {
					values = append(values, fmt.Sprintf("GET /%s/%d", path, r.Uint64()))
				}
			}
			return values
		},
		"once in every interval": func(_ *rand.Rand, limit int) (values []string) {
			for i := range 4 * limit {
				values = append(values, "GET /rare/"+word(i))
			}
			return values
		},
	}
	for shape, value := range unique {
		floods[shape] = func(r *rand.Rand, limit int) (values []string) {
			for range 6 * limit {
				values = append(values, value(r))
			}
			return values
		}
	}
	return floods
}()

// traffic is the intervals of one origin.
type traffic struct {
	intervals *registry.Intervals
	rnd       *rand.Rand
	limit     int
	unnamed   int // honest values of the last interval that had no span under their name
}

func newTraffic(limit int, seed string) *traffic {
	config := testConfig()
	config.Budgets[span.LabelResource] = limit
	return &traffic{registry.NewIntervals(&config), rand.New(rand.NewPCG(uint64(len(seed)), 21)), limit, 0}
}

// interval admits the values in any order, and returns how many of the honest ones lost a span,
// with one of them. It fails if names or masks have more rows than they may.
func (f *traffic) interval(t *testing.T, honest, flood []string) (lost int, such string) {
	t.Helper()
	r := f.intervals.Registry()
	origin, _ := r.AdmitOrigin(span.Origin{Service: "shop"})
	isHonest, hasLost, hasMask := map[string]bool{}, map[string]bool{}, map[string]bool{}
	values := append(append(append([]string{}, honest...), honest...), flood...)
	for _, name := range honest {
		isHonest[name] = true
	}
	f.rnd.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	for _, value := range values {
		a := r.Admit(origin, resource(value))
		if a.Masked != 0 {
			hasMask[rowOf(r, a).Resource] = true
		}
		if isHonest[value] && rowOf(r, a).Resource != value {
			hasLost[value] = true
			such = fmt.Sprintf("%s, which became %s", value, rowOf(r, a).Resource)
		}
	}
	rows := map[string]bool{}
	for _, entry := range rowsOf(r) {
		rows[entry.Key.Resource] = true
	}
	if delete(rows, span.Blocked); len(rows) > f.limit || len(hasMask) > f.limit/4 {
		t.Errorf("%d values and %d masks have rows of a budget of %d", len(rows), len(hasMask), f.limit)
	}
	f.unnamed = 0
	for _, name := range honest {
		if !rows[name] {
			f.unnamed++
		}
	}
	f.intervals.Begin()
	return len(hasLost), such
}

func names(family string, n int) (names []string) {
	for i := range n {
		names = append(names, families[family](i))
	}
	return names
}

// namesBelow returns a number of names so that the names and the recurring masks together are fewer than the given
// limit. Masks are values, too: those of names without rows, and those of the flood.
func namesBelow(below int, family string, flood func(*rand.Rand, int) []string) []string {
	rnd, masks, first := rand.New(rand.NewPCG(3, 4)), map[string]bool{}, map[string]bool{}
	for _, value := range flood(rnd, below) {
		if name, ok := mask.Append(nil, value); ok {
			first[string(name)] = true
		}
	}
	for _, value := range flood(rnd, below) {
		if name, ok := mask.Append(nil, value); ok && first[string(name)] {
			masks[string(name)] = true
		}
	}
	for n := 1; ; n++ {
		name := families[family](n - 1)
		if name, ok := mask.Append(nil, name); ok {
			masks[string(name)] = true
		}
		if n+len(masks) >= below {
			return names(family, n-1)
		}
	}
}

// TestSimulation_RecurringValuesKeepRows is the promise of docs/cardinality.md: a value that comes at
// least twice in every interval has its own row from the second interval on while such values are
// fewer than half of the budget, and from the fourth on while they are fewer than seven eighths,
// whatever else arrives; masks never take more than a quarter. It holds from the value's first
// span in such an interval on, also when the values begin while a flood is running, and when they
// begin again after a pause.
func TestSimulation_RecurringValuesKeepRows(t *testing.T) {
	for family := range families {
		for shape, flood := range floods {
			limits := []int{64}
			if family == "kubernetes" {
				limits = []int{40, 64, 200, 512}
			}
			for _, limit := range limits {
				for below, from := range map[int]int{limit / 2: 2, limit * 7 / 8: 4} {
					t.Run(fmt.Sprintf("%s, %s, %d of %d", family, shape, below, limit), func(t *testing.T) {
						f := newTraffic(limit, family+shape)
						all := namesBelow(below, family, flood)
						come := func(intervals int, when string) {
							for i := 1; i <= intervals; i++ {
								lost, such := f.interval(t, all, flood(f.rnd, limit))
								if i >= from && lost > 0 {
									t.Fatalf("%s, interval %d: %d values lost spans, such as %s", when, i, lost, such)
								}
							}
						}
						come(5, "from the start")
						for range 2 {
							f.interval(t, all[:1], flood(f.rnd, limit))
						}
						come(5, "next to the running flood")
					})
				}
			}
		}
	}
}

// TestRecurringValues_WithoutFlood checks that recurring values have rows from their second span on
// in the first interval of their origin, and from their first span on later.
func TestRecurringValues_WithoutFlood(t *testing.T) {
	const limit = 1024
	for family := range families {
		f, all := newTraffic(limit, family), names(family, limit*7/8)
		for i := range 5 {
			lost, such := f.interval(t, all, nil)
			if i == 0 {
				lost, such = f.unnamed, "any"
			}
			if lost > 0 {
				t.Errorf("%s, interval %d: %d values lost spans, such as %s", family, i+1, lost, such)
			}
		}
	}
}

// TestRecurringValues_WhenAFloodBegins: values that had their rows and recurred keep them.
func TestRecurringValues_WhenAFloodBegins(t *testing.T) {
	const limit = 256
	for shape, flood := range floods {
		f, all := newTraffic(limit, shape), names("routes", limit*7/8)
		for i := range 8 {
			var concurrent []string
			if i > 0 {
				concurrent = flood(f.rnd, limit)
			}
			if lost, such := f.interval(t, all, concurrent); i > 0 && lost > 0 {
				t.Errorf("%s, interval %d: %d values lost spans, such as %s", shape, i+1, lost, such)
			}
		}
	}
}

// TestRecurringValues_InTheFirstInterval: among many values that are used once, recurring values
// have rows from their second use on, if they are fewer than half of the budget.
func TestRecurringValues_InTheFirstInterval(t *testing.T) {
	const limit = 256
	for shape := range unique {
		f := newTraffic(limit, shape)
		f.interval(t, names("routes", limit/2-1-limit/16), floods[shape](f.rnd, limit))
		if f.unnamed > 0 {
			t.Errorf("%s: %d values have no row", shape, f.unnamed)
		}
	}
}

// TestSimulation_IdentifiersByZipfsLaw: a few frequent and many rare identifiers share a budget with routes. Each span
// is counted with a name: a route has its own row, and an identifier without a row has a mask.
func TestSimulation_IdentifiersByZipfsLaw(t *testing.T) {
	for _, exponent := range []float64{0.7, 0.9, 1.1, 1.5} {
		for _, begin := range []int{0, 3} {
			f := newTraffic(1024, "zipf")
			routes := names("kubernetes", 240)
			for i := range 8 {
				r := f.intervals.Registry()
				origin, _ := r.AdmitOrigin(span.Origin{Service: "shop"})
				var values []string
				for range 20_000 {
					rank := math.Pow(1-f.rnd.Float64(), -1/exponent)
					values = append(values, fmt.Sprint("GET /item/", int(min(rank, 200_000))))
				}
				for range 20 {
					if i >= begin {
						values = append(values, routes...)
					}
				}
				f.rnd.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
				for _, value := range values {
					a := r.Admit(origin, resource(value))
					if a.Collapsed != 0 && (strings.HasPrefix(value, "GET") || i > begin) {
						t.Fatalf("%v, interval %d: %s lost %b", exponent, i+1, value, a.Collapsed)
					}
					if !strings.HasPrefix(value, "GET") && a.Masked != 0 && i > begin {
						t.Fatalf("%v, interval %d: %s became %s", exponent, i+1, value, rowOf(r, a).Resource)
					}
				}
				f.intervals.Begin()
			}
		}
	}
}

// TestRecurringKeys_KeepTheirRows: combinations of few values are a flood too.
func TestRecurringKeys_KeepTheirRows(t *testing.T) {
	for honest, from := range map[int]int{149: 2, 262: 4} {
		config := testConfig()
		config.MaxAggregates = 300
		intervals := registry.NewIntervals(&config)
		rnd := rand.New(rand.NewPCG(5, 22))
		for interval := 1; interval <= 6; interval++ {
			r := intervals.Registry()
			origin, _ := r.AdmitOrigin(span.Origin{})
			keys := []span.Key{}
			for i := range honest {
				key := span.Key{Service: "s", Operation: "o", Resource: fmt.Sprint("r", i%20), Type: fmt.Sprint("t", i/20)}
				keys = append(keys, key, key)
			}
			for i := range 4000 {
				keys = append(keys, span.Key{
					Service: fmt.Sprint("s", i%16), Operation: fmt.Sprint("o", i/16%32),
					Resource: fmt.Sprint("r", i/512%20), Kind: fmt.Sprint("k", i/2000),
					HTTPMethod: fmt.Sprint("m", interval),
				})
			}
			rnd.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			for i := range keys {
				if a := r.Admit(origin, &keys[i]); interval >= from && a.Collapsed != 0 && keys[i].Kind == "" {
					t.Fatalf("%d keys, interval %d: %+v lost %b", honest, interval, keys[i], a.Collapsed)
				}
			}
			intervals.Begin()
		}
	}
}

// TestNameThatWasAMask_IsAName: a text that is the mask of some spans and the name of others, such
// as a route that a framework names itself, keeps its row as a name.
func TestNameThatWasAMask_IsAName(t *testing.T) {
	const limit = 32
	f := newTraffic(limit, "")
	for interval := range 3 {
		r := f.intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		if interval < 2 {
			for i := range limit { // most have rows, and the mask has one after them
				r.Admit(origin, resource(fmt.Sprint("GET /users/", 100*interval+i)))
			}
			for range 2 {
				if a := r.Admit(origin, resource("GET /users/{id}")); !a.IsUnchanged() {
					t.Fatalf("interval %d: %+v", interval, a)
				}
			}
		}
		for i := range 4 * limit {
			for range 3 {
				r.Admit(origin, resource(fmt.Sprint("other ", i)))
			}
		}
		if a := r.Admit(origin, resource("GET /users/{id}")); !a.IsUnchanged() {
			t.Errorf("interval %d: the name is %+v", interval, a)
		}
		f.intervals.Begin()
	}
}

// TestTagKey_RecursWithItsTags: a key that recurs keeps the tag keys of its tags, whatever else
// fills the budget of tag keys.
func TestTagKey_RecursWithItsTags(t *testing.T) {
	config := testConfig()
	intervals := registry.NewIntervals(&config)
	tagged := func(key string) *span.Key {
		return &span.Key{Service: "s", Operation: "o", Resource: "r", PeerTags: []string{key + ":value"}}
	}
	for interval := range 3 {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		if interval == 0 {
			r.Admit(origin, tagged("honest"))
			r.Admit(origin, tagged("honest"))
		}
		for i := range 2 * registry.MaxTagKeys {
			r.Admit(origin, tagged(fmt.Sprint("other ", i)))
		}
		for range 2 {
			if a := r.Admit(origin, tagged("honest")); !a.IsUnchanged() {
				t.Errorf("interval %d: the key has lost %b", interval, a.Collapsed)
			}
		}
		intervals.Begin()
	}
}
