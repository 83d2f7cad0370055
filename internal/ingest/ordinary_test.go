package ingest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestOrdinaryTracersShareTheKeyMemory: with the defaults there are more tracers than the memory
// for keys has room for. Each numbers its keys one after the other and uses all that it has
// defined, and some leave meanwhile, so that memory comes free in between. None is ended, and
// nothing is lost but names.
func TestOrdinaryTracersShareTheKeyMemory(t *testing.T) {
	for _, tracers := range []int{30, 60} {
		t.Run(fmt.Sprint(tracers), func(t *testing.T) { shareKeyMemory(t, tracers) })
	}
}

func shareKeyMemory(t *testing.T, tracers int) {
	h := start(t, func(c *configs, _ *aggregate.Config) { c.Block = true })
	const rounds, perRound = 40, 200
	sent := make([]uint64, tracers)
	var sending sync.WaitGroup
	for i := range tracers {
		c, last := h.connect(fmt.Sprint("service ", i)), rounds
		if i%3 == 0 {
			last = rounds/4 + i/3 // leaves early
		}
		sending.Go(func() {
			for round := range uint32(min(last, rounds)) {
				frame := wire.BeginDefine(nil)
				batch := []uint32{}
				for n := round * perRound; n < (round+1)*perRound; n++ {
					frame = wire.AppendDefinition(frame, n,
						key(fmt.Sprintf("GET /%s/%d/%d", strings.Repeat("r", 100), i, n)))
					batch = append(batch, n, n/2)
				}
				wire.EndDefine(frame, 0, perRound)
				if _, err := c.Write(frame); err != nil {
					break // the bye says why
				}
				if _, err := c.Write(numbered(batch...)); err != nil {
					break
				}
				sent[i] += uint64(len(batch))
			}
			if _, err := c.Write(wire.AppendBye(nil, &wire.Bye{})); err != nil {
				t.Errorf("tracer %d: %v", i, err)
			}
			if reason := c.farewell(); reason != "" {
				t.Errorf("tracer %d was ended as %s", i, reason)
			}
		})
	}
	sending.Wait()
	h.stop()
	total := uint64(0)
	for _, n := range sent {
		total += n
	}
	stats := h.Stats()
	if stats.Received != total || stats.DroppedTotal() != 0 {
		t.Errorf("of %d spans %d are received, and dropped %v", total, stats.Received, stats.Dropped)
	}
	if stats.KeysUnnumbered == 0 {
		t.Error("every key found room, so nothing was tried")
	}
}
