package flush

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// opened is when the cycles of these tests open: on a boundary, so that the
// window's buckets start 10 s before, then, and 10 s after.
var opened = time.Unix(1_700_000_000, 0)

const width = 10 * time.Second

// cycle builds sealed cycles for tests.
type cycle struct {
	origins []span.Origin
	keys    []registry.KeyEntry
	tables  []*aggregate.Table
}

const maxKeys = 1 << 12

// table returns the table of one drainer, made on its first use.
func (c *cycle) table(drainer int) *aggregate.Table {
	for len(c.tables) <= drainer {
		t := aggregate.NewTable(maxKeys, width, sketch.NewMemory(64<<20, sketch.AgentGrid()))
		t.Begin(opened)
		c.tables = append(c.tables, t)
	}
	return c.tables[drainer]
}

func (c *cycle) origin(o span.Origin) registry.OriginID {
	c.origins = append(c.origins, o)
	return registry.OriginID(len(c.origins) - 1)
}

func (c *cycle) key(origin registry.OriginID, k span.Key) registry.KeyID {
	c.keys = append(c.keys, registry.KeyEntry{Origin: origin, Key: k})
	return registry.KeyID(len(c.keys) - 1)
}

// add counts one span that ended so long after the cycle opened.
func (c *cycle) add(drainer int, key registry.KeyID, after time.Duration, ns uint64, flags span.Flags, weight float64) {
	end := opened.Add(after).UnixNano()
	window := aggregate.NewWindow(0, opened, width) // now is long after it
	c.table(drainer).Add(&aggregate.Slot{
		Key: key, End: end, Duration: ns, Flags: flags, Weight: weight, Place: window.Place(end),
	})
}

func (c *cycle) seal() *aggregate.Sealed {
	return aggregate.NewSealed(1, opened, opened.Add(width), width, c.origins, c.keys, c.tables...)
}

// someSpans is a sealed cycle of one origin and one key with n spans.
func someSpans(n int) *aggregate.Sealed {
	var c cycle
	key := c.key(c.origin(span.Origin{Service: "web"}), span.Key{Service: "web", Operation: "op", Resource: "r"})
	for i := range n {
		c.add(0, key, time.Second, uint64(i+1)*1000, 0, 1)
	}
	return c.seal()
}

// golden is a cycle with every field of an origin and of a key, in a form that
// comes out the same each time: whole weights, and two drainers.
func golden() *aggregate.Sealed {
	var c cycle
	full := c.origin(span.Origin{
		Host: "node-1", Env: "prod", Version: "1.2.3", Service: "shop", Lang: "java", LangVersion: "17",
		LangInterpreter: "OpenJDK", TracerVersion: "1.50.0", RuntimeID: "rid", ContainerID: "cid", EntityID: "in-7",
		ExternalEnv: "it-false", ProcessTags: "entrypoint.name:shop", GitCommitSHA: "abc", ObfuscationVersion: "1",
	})
	bare := c.origin(span.Origin{})
	rich := c.key(full, span.Key{
		Service: "shop", Operation: "http.request", Resource: "GET /cart", Type: "web", Kind: "client",
		TraceRoot: span.TraceRootFalse, HTTPStatus: 200, PeerTags: []string{"db.name:carts", "peer.service:db"},
		HTTPMethod: "GET", HTTPEndpoint: "/cart", GRPCStatus: "0", ServiceSource: "m", Synthetics: true,
		AdditionalTags: []string{"tenant:a"},
	})
	other := c.key(full, span.Key{
		Service: "shop", Operation: "http.request", Resource: "GET /cart", Type: "http", Kind: "client",
		TraceRoot: span.TraceRootFalse, HTTPStatus: 200, PeerTags: []string{"db.name:carts", "peer.service:db"},
		HTTPMethod: "GET", HTTPEndpoint: "/cart", GRPCStatus: "0", ServiceSource: "m", Synthetics: true,
		AdditionalTags: []string{"tenant:a"},
	})
	plain := c.key(bare, span.Key{Service: "s", Operation: "o", Resource: "r", TraceRoot: span.TraceRootTrue})
	for drainer := range 2 {
		for i := range 40 {
			c.add(drainer, rich, time.Second, 1_000_000+uint64(i)*25_000, span.TopLevel, 1)
		}
		c.add(drainer, rich, time.Second, 250_000_000, span.TopLevel, 1)
		c.add(drainer, rich, time.Second, 9_000_000_000, span.Error, 1)
	}
	c.add(0, other, time.Second, 0, 0, 2)
	c.add(0, rich, -time.Second, 5_000, 0, 1)
	c.add(1, plain, time.Second, 1_000_000, span.Error|span.TopLevel, 3)
	return c.seal()
}

func mustEncode(t testing.TB, sealed *aggregate.Sealed, limit int) []*payload {
	t.Helper()
	payloads, unencodable := NewEncoder().all(sealed, limit)
	if unencodable != 0 {
		t.Fatalf("%d spans unencodable", unencodable)
	}
	return payloads
}

// all keeps the payloads instead of shipping them.
func (e *Encoder) all(sealed *aggregate.Sealed, limit int) (payloads []*payload, unencodable uint64) {
	unencodable = e.encode(sealed, limit, func(p *payload) { payloads = append(payloads, p) })
	return payloads, unencodable
}
