package admit

import (
	"iter"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Walked lists the snapshots of batches that rooms write as bodies of spans messages. It goes
// with the last of those rooms.
func Walked(messages iter.Seq2[span.Origin, []byte]) iter.Seq2[span.Origin, *span.Batch] {
	return func(yield func(span.Origin, *span.Batch) bool) {
		for origin, body := range messages {
			if !yield(origin, walked(body)) {
				return
			}
		}
	}
}

func walked(body []byte) *span.Batch {
	walker, err := wire.WalkSpans(body)
	if err != nil {
		panic("BUG: a publisher was given what is no batch: " + err.Error())
	}
	b := &span.Batch{Snapshots: make([]span.Snapshot, 0, walker.Len())}
	for s := (wire.Snapshot{}); walker.Next(&s); {
		key := len(b.Keys)
		b.Keys = append(b.Keys, s.Key...)
		b.Snapshots = append(b.Snapshots, span.Snapshot{
			Key: uint32(key), KeyEnd: uint32(len(b.Keys)),
			Duration: s.Duration, End: s.End, Weight: s.Weight, Flags: s.Flags,
		})
	}
	return b
}
