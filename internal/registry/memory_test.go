package registry_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestRegistryBytes floods in some intervals, with as many labels as there may be and with the
// longest, and holds what that takes of the heap against what the configuration promises.
func TestRegistryBytes(t *testing.T) {
	config := registry.DefaultConfig()
	config.LabelBytes = 4 << 20
	config.MaxOrigins = 1 // so that what origins may take hides nothing
	bound := config.Bytes()
	before := liveBytes()
	intervals := registry.NewIntervals(&config)
	flood := func(name string, key func(n int) span.Key) {
		r := intervals.Registry()
		origin, _ := r.AdmitOrigin(span.Origin{})
		for n := range 6000 {
			k := key(n / 2)
			r.Admit(origin, &k)
		}
		_, keys := intervals.Size()
		taken := liveBytes() - before
		t.Logf("%s: %d bytes of %d, %d keys", name, taken, bound, keys)
		if taken > bound {
			t.Errorf("%s: %d bytes, %d promised", name, taken, bound)
		}
		intervals.Begin()
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
	flood("many", many)
	runtime.KeepAlive(intervals)
}

func liveBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
