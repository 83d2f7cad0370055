package ingest

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestNoReportOfLossesHidesLaterOnes: what a tracer says that it lost may be nonsense. A
// number beyond all reason is malformed, and a counter that comes to where its readers
// count no ones any more begins anew, as they know it of a restart.
func TestNoReportOfLossesHidesLaterOnes(t *testing.T) {
	h := start(t, nil)
	mad := h.connect("mad")
	mad.send(wire.AppendLost(nil, wire.Lost{"closed": wire.MaxLostSpans + 1}))
	mad.CloseWrite()
	if reason := mad.farewell(); reason != FaultBadMessage.String() {
		t.Errorf("a loss beyond all reason was answered with %q", reason)
	}
	c := h.connect("shop")
	for range mostLost/wire.MaxLostSpans + 1 {
		c.send(wire.AppendLost(nil, wire.Lost{"closed": wire.MaxLostSpans}))
	}
	c.send(wire.AppendLost(nil, wire.Lost{"closed": 7}))
	c.settle()
	if lost := h.Stats().ClientLost["closed"]; lost != wire.MaxLostSpans+7 {
		t.Errorf("%d are lost", lost)
	}
}
