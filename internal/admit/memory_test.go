package admit

import (
	"runtime"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestManyDrainersCostEachConnection holds what publishers take that admit the largest
// batches for many drainers against what the configuration promises for them.
func TestManyDrainersCostEachConnection(t *testing.T) {
	const publishers, drainers = 50, 64
	h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Drainers = drainers })
	largest := body(h.config.MaxBatch)
	before := heap()
	all := [publishers]*Publisher{}
	for i := range all {
		all[i] = h.NewPublisher(span.Origin{Service: "s"})
		h.offer(all[i], largest)
	}
	each := (heap() - before) / publishers
	promised := h.config.PublisherBytes(drainers)
	if each > promised || each < promised/2 {
		t.Errorf("a publisher takes %d bytes, %d promised", each, promised)
	}
	h.finish(all[:]...)
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
