package admit

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestKeyCost_WithinProtocolLimit: a key of any length, with its number, costs at most
// wire.KeyCost.
func TestKeyCost_WithinProtocolLimit(t *testing.T) {
	for length := range 6000 {
		raw := make([]byte, length)
		if cost, documented := costOf(keyCapacity(raw))+2*numberBytes, wire.KeyCost(length); cost > documented {
			t.Fatalf("a key of %d bytes costs %d, documented are %d", length, cost, documented)
		}
	}
}
