package otlp

import (
	"bytes"

	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"google.golang.org/protobuf/encoding/protowire"
)

// candidates are spans of a call that become exemplars if the destination takes it whole.
type candidates struct {
	of   *exemplars.Table
	list exemplars.Candidates
}

// propose proposes the spans of a call that go on as exemplars of the keys that they are about
// to be counted under. It is for commit.
func (s *Server) propose(c *call, from reader) {
	table := s.config.Exemplars
	if table == nil {
		return
	}
	c.candidates = candidates{table, table.Choose(func(body *exemplars.Body) {
		for g := range from.goingOn {
			cycle, slot := s.publishers.Counted(g.Batch, g.At)
			e := body.Propose(cycle, uint32(slot.Key), slot.Flags&span.Error != 0, slot.Duration)
			if e != nil {
				e.Duration, e.End = slot.Duration, slot.End
				e.TraceHigh, e.TraceLow, e.Span = g.TraceHigh, g.TraceLow, g.Span
			}
		}
	})}
}

// resolve makes exemplars of spans that have really gone on. It may be called repeatedly.
func (c *candidates) resolve(isTaken bool) {
	c.of.Resolve(c.list, isTaken)
	*c = candidates{}
}

// takesAll says whether a destination that has taken a request has left nothing of it out. Which
// spans it left out nobody says.
func (a *reply) takesAll(e encoding) bool {
	body, takes := a.message, true
	if a.asIs != nil {
		body = a.asIs
	}
	if e == inJSON && a.asIs != nil {
		return !bytes.Contains(body, []byte(`"`+rejectedNames[signalTraces]+`"`))
	}
	eachField(body, func(n protowire.Number, _ uint64, value []byte) {
		if n != fieldPartialSuccess {
			return
		}
		eachField(value, func(n protowire.Number, number uint64, _ []byte) {
			takes = takes && (n != fieldRejected || number == 0)
		})
	})
	return takes
}
