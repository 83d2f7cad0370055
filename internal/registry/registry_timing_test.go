package registry

import (
	"fmt"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// BenchmarkFlood looks up keys that have four labels over their budgets, behind closed gates.
func BenchmarkFlood(b *testing.B) {
	config := DefaultConfig()
	r := New(&config)
	origin, _ := r.AdmitOrigin(span.Origin{})
	keys := make([]span.Key, 1<<14)
	for i := range keys {
		keys[i] = span.Key{
			Service: fmt.Sprintf("service-%016x", i), Operation: fmt.Sprintf("operation.%016x", i),
			Resource: fmt.Sprintf("GET /api/v1/orders/%016x", i), Type: "http", Kind: "client",
			TraceRoot: span.TraceRootFalse, PeerTags: []string{fmt.Sprintf("peer.hostname:%016x", i)},
		}
	}
	for range 3 { // what comes again passes until nothing may
		for i := range keys {
			r.Admit(origin, &keys[i], false)
		}
	}
	var l Lookup
	l.Begin(r, origin)
	b.ReportAllocs()
	unknown := 0
	for i := 0; b.Loop(); i++ {
		key := &keys[i%len(keys)]
		if _, ok := l.Admit(key, 0, false); !ok {
			unknown++
		}
	}
	if unknown > 0 {
		b.Errorf("%d of %d keys are unknown", unknown, b.N)
	}
}

// BenchmarkNormalize is of such a key.
func BenchmarkNormalize(b *testing.B) {
	key := span.Key{
		Service: "service-0123456789abcdef", Operation: "operation.0123456789abcdef",
		Resource: "GET /api/v1/orders/0123456789abcdef", Type: "http", Kind: "client",
		TraceRoot: span.TraceRootFalse, PeerTags: []string{"peer.hostname:0123456789abcdef"},
	}
	b.ReportAllocs()
	for b.Loop() {
		key.Normalize("go")
	}
}
