package otlp

import (
	"log/slog"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/span/measure"
)

// refusedValues counts the values of measured attributes that are not counted, by reason.
type refusedValues [measure.Refusals]atomic.Uint64

// countRefusedValues counts the refused values of the request that ws.reader has read, and logs the name of an attribute
// with refused values.
func (s *Server) countRefusedValues(c *call, ws *workspace) {
	refused, attribute := ws.reader.RefusedValues()
	for reason, values := range refused {
		if values == 0 {
			continue
		}
		s.refusedValues[reason].Add(values)
		s.Log.Write(slog.LevelWarn, "values of a measured attribute are not counted; "+measure.RefusalRemedies[reason],
			append(c.senderAttributes(), "attribute", attribute, "reason", measure.RefusalNames[reason])...)
	}
}

// byReason returns a copy of the counters, by the name of the reason.
func (r *refusedValues) byReason() map[string]uint64 {
	refused := map[string]uint64{}
	for reason := measure.Counted + 1; reason < measure.Refusals; reason++ {
		refused[measure.RefusalNames[reason]] = r[reason].Load()
	}
	return refused
}
