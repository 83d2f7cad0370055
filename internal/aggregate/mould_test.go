package aggregate

import (
	"fmt"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestMouldKnowsItsOwn casts a mould of a key that lost four labels, and holds what becomes
// of others as long against what becomes of them the long way: of each that a mould could
// take for its own and must not, since one of its labels was admitted, by these bytes or as
// what they are mended to.
func TestMouldKnowsItsOwn(t *testing.T) {
	config := DefaultConfig()
	for f := range config.Budgets {
		config.Budgets[f] = 3
	}
	key := func(service, operation, resource string, tags ...string) span.Key {
		return span.Key{Service: service, Operation: operation, Resource: resource, Kind: "client", PeerTags: tags}
	}
	lost := func(n string) span.Key { return key("service-"+n, "operation."+n, "GET /"+n, "peer:"+n) }
	full := []span.Key{
		key("service-0000000a", "operation.0000_000", "GET /000\xff0000", "peer:000\xff0000"),
		key("ervice-00000001", "peration.00000001", "GET /00000001", "peer:00000001"),
		key("service-00000002", "operation.00000002", "GET /00000002", "peer:00000002"),
		key("service-00000002", "operation.00000002", "GET /00000002", "other:0000002"),
	}
	with := func(change func(*span.Key)) span.Key {
		k := lost("00000099")
		change(&k)
		return k
	}
	for name, challenge := range map[string]span.Key{
		"another of the flood":           lost("12345678"),
		"an admitted service":            with(func(k *span.Key) { k.Service = "service-00000002" }),
		"an admitted operation":          with(func(k *span.Key) { k.Operation = "operation.00000002" }),
		"an admitted resource":           with(func(k *span.Key) { k.Resource = "GET /00000002" }),
		"an admitted tag":                with(func(k *span.Key) { k.PeerTags[0] = "peer:00000002" }),
		"a service to mend":              with(func(k *span.Key) { k.Service = "service-0000000A" }),
		"an operation to mend":           with(func(k *span.Key) { k.Operation = "operation.0000!000" }),
		"an operation to mend in front":  with(func(k *span.Key) { k.Operation = "1peration.00000001" }),
		"a resource to mend":             with(func(k *span.Key) { k.Resource = "GET /000\xff0000" }),
		"a tag to mend":                  with(func(k *span.Key) { k.PeerTags[0] = "peer:000\xff0000" }),
		"a tag with another name":        with(func(k *span.Key) { k.PeerTags[0] = "othe:00000099" }),
		"a tag with an admitted name":    with(func(k *span.Key) { k.PeerTags[0] = "other:0000099" }),
		"a label that says it is lost":   with(func(k *span.Key) { k.Service = span.Blocked; k.Resource = "GET /0099" }),
		"a resource that says it":        with(func(k *span.Key) { k.Service = "service-9"; k.Resource = span.Blocked }),
		"another kind":                   with(func(k *span.Key) { k.Kind = "server" }),
		"a trace's root":                 with(func(k *span.Key) { k.TraceRoot = span.TraceRootTrue }),
		"a byte from one to the next":    key("service-0000009", "operation.0000009999", "GET /0000099", "peer:00000099"),
		"a byte that belongs to another": key("service-000000999", "operation.0000009", "GET /00000099", "peer:00000099"),
	} {
		t.Run(name, func(t *testing.T) {
			quick, long := newRegistry(&config), newRegistry(&config)
			origin, _ := quick.admitOrigin(span.Origin{})
			long.admitOrigin(span.Origin{})
			g := newGlancer(quick, origin)
			admit := func(k span.Key) {
				t.Helper()
				raw := wire.AppendKey(nil, &k)
				if got, want := g.admit(raw), long.admit(origin, longWay(raw)); got != want {
					t.Errorf("%+v became %+v, want %+v", k, got, want)
				}
			}
			for _, k := range full {
				admit(k)
			}
			for n := range 2 * castOf {
				admit(lost(fmt.Sprintf("%08d", 11+n)))
			}
			before := g.fitted
			for range 3 {
				admit(challenge)
			}
			if name == "another of the flood" && g.fitted != before+3 {
				t.Errorf("%d of 3 fitted", g.fitted-before)
			}
			g.glance.Settle()
			if quick.lost != long.lost {
				t.Errorf("lost %v, want %v", quick.lost, long.lost)
			}
			for i := range quick.names {
				if quick.names[i] != long.names[i] {
					t.Errorf("tags lost %+v, want %+v", quick.names[i], long.names[i])
				}
			}

			quick.reset()
			long.reset()
			quick.admitOrigin(span.Origin{})
			long.admitOrigin(span.Origin{})
			g.begin(quick, origin) // in the next interval there is room again
			admit(lost("00000014"))
			admit(challenge)
		})
	}
}

// flooded is a glancer with a mould, cast of keys that lose one label, and the last of them.
func flooded(t *testing.T, f Field, key func(n int) span.Key) (g *glancer, last []byte) {
	t.Helper()
	config := DefaultConfig()
	config.Budgets[f] = 1
	r := newRegistry(&config)
	origin, _ := r.admitOrigin(span.Origin{})
	g = newGlancer(r, origin)
	for n := range 3 * castOf {
		k := key(n)
		last = wire.AppendKey(nil, &k)
		g.admit(last)
	}
	if g.fitted == 0 {
		t.Fatal("there is no mould")
	}
	return g, last
}

// nextInterval empties the registry.
func (g *glancer) nextInterval() {
	g.registry.reset()
	origin, _ := g.registry.admitOrigin(span.Origin{})
	g.begin(g.registry, origin)
}

// TestEmptyKeyFitsNoMould: neither one that was never cast, nor one of another interval,
// with the bytes of a key that fitted it behind.
func TestEmptyKeyFitsNoMould(t *testing.T) {
	key := span.Key{Service: "shop", Operation: "op", Resource: "GET /00000000"}
	for len(wire.AppendKey(nil, &key))%moulds != 0 { // that of keys of no bytes
		key.Service += "s"
	}
	g, last := flooded(t, FieldResource, func(n int) span.Key {
		key.Resource = fmt.Sprintf("GET /%08d", n)
		return key
	})
	if a, ok := g.glance.Fits(last[:0]); ok {
		t.Errorf("beside a mould it becomes %+v", a)
	}
	g.glance.Settle()
	g.nextInterval()
	if a, ok := g.glance.Fits(last[:0]); ok {
		t.Errorf("in the next interval it becomes %+v", a)
	}
}

// TestBeginForgetsMoulds, and what was counted by them and not settled, as a panic between
// the two leaves it: names have other numbers in another interval.
func TestBeginForgetsMoulds(t *testing.T) {
	g, _ := flooded(t, FieldPeerTag, func(n int) span.Key {
		return span.Key{Service: "shop", Operation: "op", Resource: "GET /", PeerTags: []string{fmt.Sprintf("host:%08d", n)}}
	})
	g.nextInterval()
	g.glance.Settle()
	if lost := g.registry.lost; lost != [len(lost)]uint64{} {
		t.Errorf("an interval without keys has lost %v", lost)
	}
}
