package unsampled

import (
	"slices"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// Cut takes the unsampled traces out of the body that a table was read of, which is written over,
// and returns what is left and how much is not.
func Cut(t *spantable.Table, d *decode.Decoder) (left []byte, traces, spans int) {
	body, list := t.Body, d.List()
	isCut := func(g spantable.Group) bool { return isUnsampled(t, &g) }
	if list.End == 0 || !slices.ContainsFunc(t.Groups, isCut) {
		return body, 0, 0 // before anything is moved
	}
	if list.Fields > 0 {
		return cutV1(t, list, d.Strings())
	}
	at := list.First
	for i := range t.Groups {
		g := &t.Groups[i]
		if isUnsampled(t, g) {
			traces++
			spans += len(t.SpansOf(g))
			continue
		}
		at += copy(body[at:], body[g.At:g.End])
	}
	// Chunks that hold nothing are in no list of ours, and were not kept either.
	setCount(body[list.At:list.First], len(t.Groups)-traces)
	at += copy(body[at:], body[list.End:])
	return body[:at], traces, spans
}
