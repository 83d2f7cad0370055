package registry

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestRegistryBytes floods one registry in two intervals, first with as many labels as
// there may be and then with the longest, and holds what it takes of the heap against
// what the configuration promises for one.
func TestRegistryBytes(t *testing.T) {
	config := DefaultConfig()
	config.LabelBytes = 4 << 20
	config.MaxOrigins = 1 // so that what origins may take hides nothing
	bound := config.LabelBytes + config.reserve().bytes + 2*config.sightBytes() + originBytes
	before := liveBytes()
	r := New(&config)
	flood := func(name string, key func(n int) span.Key) {
		origin, _ := r.AdmitOrigin(span.Origin{})
		for n := range 6000 {
			k := key(n / 2)
			r.Admit(origin, &k, false)
		}
		taken := liveBytes() - before
		t.Logf("%s: %d bytes of %d, %d keys, %d labels", name, taken, bound, len(r.keys), len(r.budgets.labels.list.items))
		if taken > bound {
			t.Errorf("%s: %d bytes, %d promised", name, taken, bound)
		}
		if charged := r.shares.others.bytes + r.shares.reserve.taken.bytes; charged < config.LabelBytes {
			t.Errorf("%s: only %d bytes were taken", name, charged)
		}
		r.Reset(noPast())
	}
	many := func(n int) span.Key {
		k := span.Key{Resource: fmt.Sprint(n)}
		for tag := range span.MaxPeerTags {
			k.PeerTags = append(k.PeerTags, fmt.Sprintf("%d:%d", tag, n))
		}
		return k
	}
	long := func(n int) span.Key { return span.Key{Resource: fmt.Sprintf("%d%4900d", n, n)} }
	flood("many", many)
	flood("long", long)
	flood("many", many)
	runtime.KeepAlive(r)
}

func liveBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
