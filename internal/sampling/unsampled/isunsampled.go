package unsampled

import (
	"encoding/binary"
	"math"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// noPriority is what two of the formats write where a trace has none: then the agent decides.
const noPriority = math.MinInt8

// isUnsampled says whether a tracer's sampling threw a trace away, and nothing in it asks to be
// kept: an error, a span that was sampled for itself, an event.
func isUnsampled(t *spantable.Table, g *spantable.Group) bool {
	if !g.HasPriority || g.Priority > 0 || g.Priority == noPriority || g.First == g.Last {
		return false
	}
	for i := range t.SpansOf(g) {
		s := &t.SpansOf(g)[i]
		if s.Status == spantable.StatusError {
			return false
		}
		for _, tag := range t.TagsOf(s) {
			if tag.Label == decode.LabelSpanSampling || tag.Label == decode.LabelEventRate {
				return false
			}
		}
	}
	return true
}

// setCount writes another, smaller count into the header of an array.
func setCount(header []byte, count int) {
	switch len(header) {
	case 1:
		header[0] = 0x90 | byte(count)
	case 3:
		binary.BigEndian.PutUint16(header[1:], uint16(count))
	default:
		binary.BigEndian.PutUint32(header[1:], uint32(count))
	}
}
