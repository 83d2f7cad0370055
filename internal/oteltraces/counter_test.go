package oteltraces

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/spanstatsd/spanstatsd/internal/bytecache"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestAnOriginIsWhatItsResourceSays, by the present names and by those before.
func TestAnOriginIsWhatItsResourceSays(t *testing.T) {
	of := func(attributes []attribute) span.Origin {
		return countedOf(t, NewCounter(), request(madeResource{attributes, [][]madeSpan{{{name: "x"}}}}), standard())[0].origin
	}
	want := span.Origin{
		Host: "shop-5d9c7b8f4-x2x7q", Env: "prod", Version: "1.4.2", Service: "shop", Lang: "java", LangVersion: "21.0.4+7",
		LangInterpreter: "OpenJDK Runtime Environment", TracerVersion: "otlp-1.52.0", RuntimeID: "6ad3f3ae-7d1c-4d1b-8e9d-3a0a5fd0a1f2",
		ContainerID: "8f1d2c3b4a5968778695a4b3c2d1e0f8f1d2c3b4a5968778695a4b3c2d1e0f8",
	}
	if got := of(sdkResource("shop")); got != want {
		t.Errorf("%+v, want\n%+v", got, want)
	}
	if got, want := of([]attribute{{"deployment.environment", "old"}, {"vcs.ref.head.revision", "abc"}}), (span.Origin{
		Service: "unknown_service", Env: "old", TracerVersion: "otlp-", GitCommitSHA: "abc",
	}); got != want {
		t.Errorf("%+v, want\n%+v", got, want)
	}
	if got := of([]attribute{{"service.name", strings.Repeat("x", 300)}}); len(got.Service) != span.MaxOriginField {
		t.Errorf("a service of %d bytes", len(got.Service))
	}
}

// TestThereIsABatchAnOrigin, however many resources say the same, and in whatever order.
func TestThereIsABatchAnOrigin(t *testing.T) {
	resource := func(service string, names ...string) madeResource {
		var spans []madeSpan
		for _, name := range names {
			spans = append(spans, madeSpan{name: name})
		}
		return madeResource{sdkResource(service), [][]madeSpan{spans}}
	}
	turned := resource("a", "4")
	slices.Reverse(turned.attributes)
	c := NewCounter()
	for range 2 {
		got := map[string]string{}
		for _, s := range countedOf(t, c, request(resource("a", "1", "2"), resource("b", "3"), turned), standard()) {
			got[s.origin.Service+s.key.Service] += s.key.Resource
		}
		if len(c.batches.all) != 2 || got["aa"] != "124" || got["bb"] != "3" || c.Spans() != 4 {
			t.Errorf("%d batches: %v", len(c.batches.all), got)
		}
	}
	var many []madeResource
	for i := range MaxBatches + 1 {
		many = append(many, resource(fmt.Sprint(i), "x"))
	}
	if err := c.Count(request(many[1:]...), standard()); err != nil {
		t.Error(err)
	}
	if err := c.Count(request(many...), standard()); !errors.Is(err, ErrTooMuch) {
		t.Errorf("%d origins: %v", len(many), err)
	}
	for range c.Batches {
		t.Error("a body that was not counted has batches")
	}
	if err := c.Count(request(madeResource{attributes: sdkResource("idle")}), standard()); err != nil || len(c.batches.all) != 0 {
		t.Errorf("a resource without spans has a batch: %v", err)
	}
}

// TestMoreOriginsThanAreRemembered each have their own spans.
func TestMoreOriginsThanAreRemembered(t *testing.T) {
	c := NewCounter()
	for i := range 3 * mostResources {
		service := fmt.Sprint("s", i%(2*mostResources))
		for _, s := range countedOf(t, c, request(madeResource{sdkResource(service), [][]madeSpan{{{name: "x"}}}}), standard()) {
			if s.origin.Service != service {
				t.Fatalf("%s is called %s", service, s.origin.Service)
			}
		}
	}
	if len(c.origins.known) != mostResources {
		t.Errorf("%d origins are remembered", len(c.origins.known))
	}
	long := append(sdkResource("long"), attribute{"process.command_line", strings.Repeat("x", mostSaid)})
	for range 2 {
		if got := countedOf(t, c, request(madeResource{long, [][]madeSpan{{{name: "x"}}}}), standard()); got[0].origin.Service != "long" {
			t.Errorf("%+v", got[0].origin)
		}
	}
}

// randomSpan has labels of which each is likely to differ from that of another span by
// little: in one place, in length, in what it was written as.
func randomSpan(rnd *rand.Rand, names []string) (s madeSpan) {
	text := func() string {
		return []string{"", "a", "ab", "b", "200", "grpc", strings.Repeat("x", rnd.IntN(700))}[rnd.IntN(7)]
	}
	s = madeSpan{
		trace: rnd.Uint64(), id: 1, parent: rnd.Uint64N(2), name: text(), kind: kind(rnd.IntN(int(kinds))), start: began,
		end: began + rnd.Uint64N(1e9), code: rnd.IntN(3),
	}
	for range rnd.IntN(6) {
		a := attribute{names[rnd.IntN(len(names))], nil}
		switch rnd.IntN(5) {
		case 0:
			a.value = rnd.IntN(2)
		case 1:
			a.value = rnd.IntN(2) == 0
		case 2:
			a.value = float64(rnd.IntN(3))
		default:
			a.value = text()
		}
		s.attributes = append(s.attributes, a)
	}
	return s
}

// TestACachedKeyIsTheKeyThatWouldBeMade: a counter that remembers keys makes of each body
// what one makes that has met none, whatever policy came before.
func TestACachedKeyIsTheKeyThatWouldBeMade(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	names := append([]string{"tenant", "zone"}, attributeNames[1:]...)
	policies := []*Policy{NewPolicy(Labels{[]string{"zone", "http.route"}}), NewPolicy(Labels{[]string{"tenant"}})}
	c, found := NewCounter(), 0
	for range 200 {
		var spans []madeSpan
		for range 50 {
			spans = append(spans, randomSpan(rnd, names[:2+rnd.IntN(len(names)-2)]))
		}
		body, policy := request(madeResource{sdkResource("s"), [][]madeSpan{spans}}), policies[rnd.IntN(2)]
		fresh := NewCounter()
		got, want := countedOf(t, c, body, policy), countedOf(t, fresh, body, policy)
		for i := range want {
			if !bytes.Equal(got[i].Key, want[i].Key) {
				t.Fatalf("span %d has the key\n%q, alone\n%q", i, got[i].Key, want[i].Key)
			}
		}
		for i := range fresh.payload.records {
			rec := &fresh.payload.records[i]
			if fresh.keys.source(&fresh.payload, rec, &fresh.payload.resources[0], "s") {
				found++
			}
		}
	}
	if found < 200 {
		t.Errorf("%d keys were cached", found)
	}
}

// TestSpansThatAreAlikeKeepTheirKeys counts two spans after one another that differ in one
// of all the things that a key is made of: each has the key that it has alone.
func TestSpansThatAreAlikeKeepTheirKeys(t *testing.T) {
	base := madeSpan{name: "ab", kind: kindClient, parent: 1}
	with := func(change func(*madeSpan)) madeSpan {
		s := base
		change(&s)
		return s
	}
	tagged := func(name string, value any) madeSpan {
		return with(func(s *madeSpan) { s.attributes = []attribute{{name, value}} })
	}
	long := strings.Repeat("x", bytecache.MaxSource+bytecache.Slack)
	for what, pair := range map[string][2]madeSpan{
		"the name":                  {base, with(func(s *madeSpan) { s.name = "ac" })},
		"the kind":                  {base, with(func(s *madeSpan) { s.kind = kindServer })},
		"whether it is a root":      {base, with(func(s *madeSpan) { s.parent = 0 })},
		"whether it is OK":          {base, with(func(s *madeSpan) { s.code = codeOK })},
		"the label of a tag":        {tagged("db.namespace", "a"), tagged("db.collection.name", "a")},
		"the text of a tag":         {tagged("db.namespace", "a"), tagged("db.namespace", "b")},
		"the number of a tag":       {tagged("db.namespace", 1), tagged("db.namespace", 2)},
		"what a tag was written as": {tagged("db.namespace", 1), tagged("db.namespace", true)},
		"what is longer than is remembered": {
			with(func(s *madeSpan) {
				s.attributes = []attribute{{"graphql.operation.type", long[:len(long)-42]}, {"db.namespace", long[:40] + "a"}}
			}),
			with(func(s *madeSpan) {
				s.attributes = []attribute{{"graphql.operation.type", long[:len(long)-42]}, {"db.namespace", long[:40] + "b"}}
			}),
		},
		"what is too long": {tagged("db.namespace", long+"a"), tagged("db.namespace", long+"b")},
	} {
		one, other := only(t, pair[0], standard()), only(t, pair[1], standard())
		if bytes.Equal(one.Key, other.Key) {
			t.Fatalf("%s: both have the key %q", what, one.Key)
		}
		got := countedOf(t, NewCounter(), request(madeResource{sdkResource("shop"), [][]madeSpan{pair[:]}}), standard())
		if !bytes.Equal(got[0].Key, one.Key) || !bytes.Equal(got[1].Key, other.Key) {
			t.Errorf("%s: after one another the spans have the keys\n%q\n%q, alone\n%q\n%q", what, got[0].Key, got[1].Key, one.Key, other.Key)
		}
	}
}

// TestTheCounterOfTheNextBodyHoldsNothingOfTheLast: neither where it was counted, nor where
// it was not.
func TestTheCounterOfTheNextBodyHoldsNothingOfTheLast(t *testing.T) {
	for _, cut := range []int{0, 1} {
		c := NewCounter()
		last := func() weak.Pointer[byte] {
			body := slices.Clone(webRequest(100))
			body = slices.Clone(body[:len(body)-cut])
			if err := c.Count(body, standard()); (err == nil) != (cut == 0) {
				t.Fatal(err)
			}
			leftOf(&c.walked, nil, &Keeping{Share: 0.5})
			return weak.Make(&body[0])
		}()
		next := c.Next()
		runtime.GC()
		if last.Value() != nil {
			t.Errorf("cut by %d: the last body is still held", cut)
		}
		runtime.KeepAlive(c)
		runtime.KeepAlive(next)
	}
}
