package registry_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"unsafe"
	"weak"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestTags_AnyOrderIsOneKey also covers collapsed tags.
func TestTags_AnyOrderIsOneKey(t *testing.T) {
	r, origin := one(t, func(c *registry.Config) { c.Budgets[span.LabelPeerTag] = 2 })
	rnd, rows := rand.New(rand.NewPCG(7, 20)), map[registry.KeyID]bool{}
	for n := range 400 {
		key := resource("r")
		for _, i := range rnd.Perm(20) {
			key.PeerTags = append(key.PeerTags, fmt.Sprintf("key%d:%d", i, n))
		}
		if a := r.Admit(origin, key); n >= 200 {
			rows[a.ID] = true
			if tags := rowOf(r, a).PeerTags; !slices.IsSorted(tags) || len(tags) != 20 {
				t.Fatalf("key %d has tags %v", n, tags)
			}
		}
	}
	if len(rows) != 1 {
		t.Errorf("they are in %d rows", len(rows))
	}
}

// TestStatus_OverBudgetIsAbsent checks that a key whose status finds no place has the row of keys
// without a status.
func TestStatus_OverBudgetIsAbsent(t *testing.T) {
	r, origin := one(t, func(c *registry.Config) { c.Budgets[span.LabelHTTPStatus] = 1 })
	rows := map[registry.KeyID]bool{}
	for _, status := range []uint32{200, 0, 404, 200, 500} {
		key := resource("r")
		key.HTTPStatus = status
		a := r.Admit(origin, key)
		if rows[a.ID] = true; status != 200 && rowOf(r, a).HTTPStatus != 0 {
			t.Errorf("status %d became %+v", status, rowOf(r, a))
		}
	}
	if len(rows) != 2 {
		t.Errorf("they are in %d rows", len(rows))
	}
}

// TestRecurrence_IsReported checks that Admit reports the second use of a key with a collapsed label,
// without a row, or with a mask, so that a publisher caches the key.
func TestRecurrence_IsReported(t *testing.T) {
	for l := range span.EndOfLists {
		for _, mode := range []registry.Masking{registry.MaskOverBudget, registry.MaskAlways} {
			r, origin := one(t, func(c *registry.Config) { c.Budgets[l], c.Masking = 1, mode })
			for i, value := range []string{"/fill/word", "/fill/word", "/a/1", "/b/2", "/a/1", "/b/2"} {
				key := resource("r")
				with(key, l, value)
				if a := r.Admit(origin, key); !a.IsUnchanged() && a.ReplacedAtFirstUse != (i <= 3) {
					t.Errorf("%s, %s: coming %d is %+v", l, mode, i, a)
				}
			}
		}
	}
	always, shop := one(t, func(c *registry.Config) { c.Masking = registry.MaskAlways })
	for i, value := range []string{"/a/1", "/a/2", "/a/1", "/a/2"} {
		if a := always.Admit(shop, resource(value)); a.ReplacedAtFirstUse != (i <= 1) {
			t.Errorf("%s, which has the place of its mask, is %+v", value, a)
		}
	}
	r, origin := one(t, func(c *registry.Config) { c.MaxAggregates = 1 })
	for i := range 40 {
		a := r.Admit(origin, resource(fmt.Sprint("word ", i%20)))
		if a.Collapsed.Has(span.WholeKey) && a.ReplacedAtFirstUse != (i < 20) {
			t.Errorf("key %d is %+v", i, a)
		}
	}
}

// TestRegistry_RetainsNoMessage: once its keys are judged, a message may be collected that labels
// were a part of.
func TestRegistry_RetainsNoMessage(t *testing.T) {
	r, origin := one(t, func(c *registry.Config) { c.Budgets[span.LabelResource], c.MaxAggregates = 1, 4 })
	var messages []weak.Pointer[byte]
	for i := range 100 {
		message := fmt.Appendf(nil, "GET /users/%d/orders", i)
		messages = append(messages, weak.Make(unsafe.SliceData(message)))
		text := unsafe.String(unsafe.SliceData(message), len(message))
		r.Admit(origin,
			&span.Key{
				Service: "s", Operation: "o", Resource: text,
				PeerTags: []string{text, text[4:]},
			})
	}
	runtime.GC()
	for i, message := range messages {
		if message.Value() != nil {
			t.Fatalf("message %d is kept", i)
		}
	}
	runtime.KeepAlive(r)
}

// TestFlood_AllocatesNothing covers an origin whose budgets are used up, with labels that collapse,
// labels that are masked, and keys that find no row.
func TestFlood_AllocatesNothing(t *testing.T) {
	for name, key := range map[string]func(i int) *span.Key{
		"words": func(i int) *span.Key { return resource(fmt.Sprintf("%x", i*7919) + "-word") },
		"masks": func(i int) *span.Key { return resource(fmt.Sprint("GET /users/", i, "/orders")) },
		"tags": func(i int) *span.Key {
			return &span.Key{PeerTags: []string{fmt.Sprintf("key%d:v", i), fmt.Sprint("host:", i), "host:1"}}
		},
		"keys": func(i int) *span.Key {
			return &span.Key{
				Resource: fmt.Sprint("r", i%50), Type: fmt.Sprint(i / 50 % 50),
				HTTPStatus: uint32(i), Kind: fmt.Sprint(i / 2500),
			}
		},
	} {
		r, origin := one(t, func(c *registry.Config) { c.MaxAggregates = 64 })
		keys := make([]*span.Key, 40_000)
		for i := range keys {
			keys[i] = key(i)
		}
		next := 0
		admit := func() {
			r.Admit(origin, keys[next])
			next++
		}
		for range 30_000 {
			admit()
		}
		if allocs := testing.AllocsPerRun(5000, admit); allocs != 0 {
			t.Errorf("%s: a key costs %v allocations", name, allocs)
		}
	}
}

// TestPublishers_ManyAtOnce admits keys concurrently. An admission never changes, and no budget
// contains more values than its limit.
func TestPublishers_ManyAtOnce(t *testing.T) {
	const budget = 300
	config := testConfig()
	config.Masking, config.Budgets[span.LabelResource] = registry.MaskNever, budget
	intervals := registry.NewIntervals(&config)
	for range 3 {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		var publishers sync.WaitGroup
		for p := range 4 {
			publishers.Go(func() {
				rnd, admitted := rand.New(rand.NewPCG(9, uint64(p))), map[string]registry.KeyID{}
				for range 3000 {
					value := fmt.Sprint("GET /", rnd.IntN(600))
					a := r.Admit(origin, resource(value))
					if id, is := admitted[value]; is && (a.ID != id || !a.IsUnchanged()) {
						t.Errorf("%s was %d, and is %+v", value, id, a)
						return
					}
					if a.IsUnchanged() {
						admitted[value] = a.ID
					}
				}
			})
		}
		publishers.Wait()
		values := map[string]bool{}
		for _, row := range rowsOf(r) {
			values[row.Key.Resource] = true
		}
		if delete(values, span.Blocked); len(values) != budget {
			t.Errorf("%d values for a budget of %d", len(values), budget)
		}
		intervals.Begin()
	}
}
