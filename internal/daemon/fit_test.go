//go:build !race

package daemon

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestWhatAnAggregateTakes: labelsOfOne holds the labels of a key with a route of its own,
// both as its resource and as its endpoint, and three tags, and is no more than twice that.
func TestWhatAnAggregateTakes(t *testing.T) {
	for _, c := range []struct {
		name string
		key  func(n int) span.Key
	}{
		{"the shortest", func(n int) span.Key { return span.Key{Resource: strconv.Itoa(n)} }},
		{"of a web service", func(n int) span.Key {
			route := fmt.Sprintf("/api/v1/accounts/section-%d/items", n)
			return span.Key{
				Service: "shop", Operation: "http.request", Resource: "GET " + route, Type: "web",
				Kind: "server", HTTPStatus: 200, HTTPMethod: "GET", HTTPEndpoint: route,
				PeerTags: []string{"out.host:db-1", "peer.service:db", "zone:a"},
			}
		}},
		{
			"with a resource of 5000 bytes",
			func(n int) span.Key { return span.Key{Resource: fmt.Sprintf("%05000d", n)} },
		},
	} {
		config := registry.DefaultConfig()
		config.LabelBytes = 64 << 20
		interval := registry.NewIntervals(&config).Registry()
		before := liveBytes()
		for service := range 30 {
			origin, _ := interval.AdmitOrigin(span.Origin{Service: strconv.Itoa(service)})
			for n := range 100 {
				key := c.key(n)
				interval.Admit(origin, &key)
			}
		}
		_, keys := interval.Size()
		each := (liveBytes() - before) / keys
		t.Logf("%d keys, %s: %d bytes each", keys, c.name, each)
		if keys != 3000 || c.name == "of a web service" && (each > labelsOfOne || each < labelsOfOne/2) {
			t.Errorf("%d keys take %d bytes each, %d are reckoned with", keys, each, labelsOfOne)
		}
		runtime.KeepAlive(interval)
	}
}

func liveBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
