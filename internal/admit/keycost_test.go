package admit

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestAKeyCostsNoMoreThanTheProtocolSays, with its number, whatever its length.
func TestAKeyCostsNoMoreThanTheProtocolSays(t *testing.T) {
	for length := range 6000 {
		raw := make([]byte, length)
		if cost, said := costOf(room(raw))+2*numberBytes, wire.KeyCost(length); cost > said {
			t.Fatalf("a key of %d bytes costs %d, and %d are said", length, cost, said)
		}
	}
}
