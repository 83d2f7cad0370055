package ingest

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestLost_ImplausibleNumbers checks numbers of lost spans that clients report. Implausible
// numbers are invalid, and a counter that reaches its maximum restarts.
func TestLost_ImplausibleNumbers(t *testing.T) {
	h := start(t, nil)
	mad := h.connect("mad")
	mad.send(wire.AppendLost(nil, wire.Lost{"closed": wire.MaxLostSpans + 1}))
	mad.CloseWrite()
	if reason := mad.byeReason(); reason != FaultBadMessage.String() {
		t.Errorf("a loss beyond all reason was answered with %q", reason)
	}
	c := h.connect("shop")
	for range maxLost/wire.MaxLostSpans + 1 {
		c.send(wire.AppendLost(nil, wire.Lost{"closed": wire.MaxLostSpans}))
	}
	c.send(wire.AppendLost(nil, wire.Lost{"closed": 7}))
	c.settle()
	if lost := h.Stats().ClientLost["closed"]; lost != wire.MaxLostSpans+7 {
		t.Errorf("%d are lost", lost)
	}
}
