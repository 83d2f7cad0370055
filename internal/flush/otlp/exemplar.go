package otlp

import (
	"encoding/binary"

	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// slowest is the exemplar of the spans of a series with one outcome: the slowest of those of
// its keys. Without one its Span is 0.
func (e *encoder) slowest(rows []flush.Row, g group, isError bool) (slowest exemplars.Exemplar) {
	for i := g.first; i >= 0; i = e.grouper.next[i] {
		slowest = slower(slowest, e.sealed.Of(uint32(rows[i].KeyID()), isError))
	}
	return slowest
}

// slower is one of two exemplars, or none of none.
func slower(a, b exemplars.Exemplar) exemplars.Exemplar {
	if a.Span == 0 || b.Duration > a.Duration {
		return b
	}
	return a
}

// The lengths of what an Exemplar holds, and of the whole.
const (
	spanIDSize   = 8
	traceIDSize  = 16
	exemplarSize = 1 + 8 + 1 + 8 + 1 + 1 + spanIDSize + 1 + 1 + traceIDSize
)

// appendExemplar appends an exemplar as a field of a point. Its value is the truncated
// duration, which is what its bucket counts. Its time is in the window in which it was
// counted, as the specification asks for, though its span may have ended before.
func appendExemplar(b []byte, x exemplars.Exemplar, counted window) []byte {
	ended := min(max(uint64(max(0, x.End)), counted.start), counted.end)
	b = appendHead(b, fieldPointExemplars, exemplarSize)
	b = appendFixed(b, fieldExemplarTime, ended)
	b = appendHead(b, fieldExemplarSpanID, spanIDSize)
	b = binary.BigEndian.AppendUint64(b, x.Span)
	b = appendHead(b, fieldExemplarTraceID, traceIDSize)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, x.TraceHigh), x.TraceLow)
	return appendDouble(b, fieldExemplarDouble, sketch.Truncate(x.Duration)/1e9)
}
