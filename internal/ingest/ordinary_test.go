package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestKeyMemory_SharedByOrdinaryClients runs more clients than the default key memory suffices for.
// Each numbers its keys consecutively and uses all of them; some leave in between, which frees
// memory. No client is disconnected, and only labels are lost.
func TestKeyMemory_SharedByOrdinaryClients(t *testing.T) {
	for _, tracers := range []int{30, 60} {
		t.Run(fmt.Sprint(tracers), func(t *testing.T) { shareKeyMemory(t, tracers) })
	}
}

func shareKeyMemory(t *testing.T, tracers int) {
	h := start(t, func(c *configs, _ *aggregate.Config) { c.Block = true })
	const rounds, perRound = 40, 50
	all, sent := make([]*tracer, tracers), uint64(0)
	for i := range all {
		all[i] = h.connect(fmt.Sprint("service ", i))
	}
	for round := range rounds {
		for i, c := range all {
			if i%3 == 0 && round > rounds/2+i%10 {
				continue // has disconnected
			}
			defined, batch := wire.BeginDefine(nil), []uint32{}
			for n := uint32(round * perRound); n < uint32((round+1)*perRound); n++ {
				defined = wire.AppendDefinition(defined, n,
					key(fmt.Sprintf("GET /%s/%d/%d", strings.Repeat("r", 500), i, n)))
				batch = append(batch, n, n/2)
			}
			wire.EndDefine(defined, 0, perRound)
			for _, frame := range [][]byte{defined, numbered(batch...)} {
				if _, err := c.Write(frame); err != nil {
					t.Fatalf("tracer %d of %d was ended in round %d as %s", i, tracers, round, c.byeReason())
				}
			}
			sent += uint64(len(batch))
			if i%3 == 0 && round == rounds/2+i%10 {
				c.settle()
			}
		}
	}
	for i, c := range all {
		if i%3 != 0 {
			c.settle()
		}
	}
	h.stop()
	stats := h.Stats()
	if stats.Received != sent || stats.DroppedTotal() != 0 {
		t.Errorf("of %d spans %d are received, and dropped %v", sent, stats.Received, stats.Dropped)
	}
	if stats.KeysUnnumbered == 0 {
		t.Error("every key found room, so nothing was tried")
	}
}
