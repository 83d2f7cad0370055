// Package testcycle builds sealed cycles for tests of exporters, without a socket, a ring or a drainer. A
// test adds origins and keys, adds spans to the tables of any number of drainers, and seals the cycle.
//
// All cycles begin at the same time and are deterministic, so tests can compare encoded payloads with
// golden files.
//
// Concurrency: a Cycle can be used by one goroutine at a time.
//
// Limits: each table has space for 4096 keys and 64 MiB of sketches.
package testcycle

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Opened is the start time of all cycles. It is a multiple of Width, so the buckets of the window start 10
// s before it, at it, and 10 s after it.
var Opened = time.Unix(1_700_000_000, 0)

// Width is the width of a bucket.
const Width = 10 * time.Second

// Cycle builds a sealed cycle.
type Cycle struct {
	Grid *sketch.Grid // bins of the sketches; nil for those of the Datadog agent

	origins []span.Origin
	keys    []registry.KeyEntry
	tables  []*aggregate.Table
}

const maxKeys = 1 << 12

// table returns the table of a drainer, and creates it on first use.
func (c *Cycle) table(drainer int) *aggregate.Table {
	for len(c.tables) <= drainer {
		t := aggregate.NewTable(maxKeys, Width, sketch.NewMemory(64<<20, cmp.Or(c.Grid, sketch.AgentGrid())))
		t.Begin(Opened)
		c.tables = append(c.tables, t)
	}
	return c.tables[drainer]
}

// Origin adds an origin and returns its ID.
func (c *Cycle) Origin(o span.Origin) registry.OriginID {
	c.origins = append(c.origins, o)
	return registry.OriginID(len(c.origins) - 1)
}

// Key adds a key and returns its ID.
func (c *Cycle) Key(origin registry.OriginID, k span.Key) registry.KeyID {
	c.keys = append(c.keys, registry.KeyEntry{Origin: origin, Key: k})
	return registry.KeyID(len(c.keys) - 1)
}

// Add counts a span that ends the given time after the start of the cycle.
func (c *Cycle) Add(
	drainer int, key registry.KeyID, after time.Duration, ns uint64, flags span.Flags, weight float64,
) {
	end := Opened.Add(after).UnixNano()
	window := aggregate.NewWindow(0, Opened, Width)
	c.table(drainer).Add(&aggregate.Slot{
		Key: key, End: end, Duration: ns, Flags: flags, Weight: weight, Place: window.Place(end),
	})
}

// Seal returns the sealed cycle.
func (c *Cycle) Seal() *aggregate.Sealed {
	return aggregate.NewSealed(1, Opened, Opened.Add(Width), Width, c.origins, c.keys, c.tables...)
}

var webKey = span.Key{Service: "web", Operation: "op", Resource: "r"}

// Spans returns a sealed cycle with n spans of one origin and one key.
func Spans(n int) *aggregate.Sealed {
	var c Cycle
	key := c.Key(c.Origin(span.Origin{Service: "web"}), webKey)
	for i := range n {
		c.Add(0, key, time.Second, uint64(i+1)*1000, 0, 1)
	}
	return c.Seal()
}

// Origins returns a sealed cycle with one span for each of n origins.
func Origins(n int) *aggregate.Sealed {
	var c Cycle
	for i := range n {
		key := c.Key(c.Origin(span.Origin{Service: fmt.Sprint("s", i)}), webKey)
		c.Add(0, key, time.Second, 1000, 0, 1)
	}
	return c.Seal()
}

// Golden returns a sealed cycle for golden files. It sets every field of an origin and of a key, and has
// two drainers. All weights are integers, so that its encoding is deterministic.
func Golden() *aggregate.Sealed {
	var c Cycle
	full := c.Origin(span.Origin{
		Host: "node-1", Env: "prod", Version: "1.2.3", Service: "shop", Lang: "java", LangVersion: "17",
		LangInterpreter: "OpenJDK", TracerVersion: "1.50.0", RuntimeID: "rid",
		ContainerID: "cid", EntityID: "in-7", ExternalEnv: "it-false",
		ProcessTags: "entrypoint.name:shop", GitCommitSHA: "abc", ObfuscationVersion: "1",
	})
	bare := c.Origin(span.Origin{})
	every := span.Key{
		Service: "shop", Operation: "http.request", Resource: "GET /cart", Type: "web", Kind: "client",
		TraceRoot: span.TraceRootFalse, HTTPStatus: 200,
		PeerTags:   []string{"db.name:carts", "peer.service:db"},
		HTTPMethod: "GET", HTTPEndpoint: "/cart", GRPCStatus: "0", ServiceSource: "m", Synthetics: true,
		AdditionalTags: []string{"tenant:a"},
	}
	rich := c.Key(full, every)
	every.Type = "http"
	other := c.Key(full, every)
	plain := c.Key(bare, span.Key{Service: "s", Operation: "o", Resource: "r", TraceRoot: span.TraceRootTrue})
	for drainer := range 2 {
		for i := range 40 {
			c.Add(drainer, rich, time.Second, 1_000_000+uint64(i)*25_000, span.TopLevel, 1)
		}
		c.Add(drainer, rich, time.Second, 250_000_000, span.TopLevel, 1)
		c.Add(drainer, rich, time.Second, 9_000_000_000, span.Error, 1)
	}
	c.Add(0, other, time.Second, 0, 0, 2)
	c.Add(0, rich, -time.Second, 5_000, 0, 1)
	c.Add(1, plain, time.Second, 1_000_000, span.Error|span.TopLevel, 3)
	return c.Seal()
}

// Merged returns a sealed cycle that contains only the given groups of client-computed statistics.
func Merged(t testing.TB, now time.Time, groups ...aggregate.Group) (sealed *aggregate.Sealed) {
	t.Helper()
	config := aggregate.DefaultConfig()
	config.Merge, config.Deliver = true, func(s *aggregate.Sealed) { sealed = s }
	a, err := aggregate.New(config)
	if err != nil {
		t.Fatal(err)
	}
	guard := a.NewGuard()
	cycle := guard.Enter()
	origin, _ := cycle.AdmitOrigin(span.Origin{})
	merging := cycle.LockGroups()
	if err := merging.Reserve(groups, uint64(Width), now); err != nil {
		t.Fatal(err)
	}
	for i := range groups {
		merging.Add(origin, &groups[i])
	}
	merging.End()
	guard.Exit()
	a.Start()
	a.Stop()
	return sealed
}
