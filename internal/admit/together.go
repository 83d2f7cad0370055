package admit

import (
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Part is the batch of one publisher among those that are admitted together.
type Part struct {
	Publisher *Publisher
	Batch     *span.Batch
}

// PublishTogether admits the batches of several publishers, each at most once among
// them, all or none: what a tracer sent in one request can be left to the agent, or
// refused, only whole. It never waits for room.
//
// It calls commit once everything that could go wrong has gone well, and before the
// first span is published. Whoever was told so must not have the spans counted by
// anybody else, even if a panic comes out of here: what that leaves unpublished is
// dropped as a defect of ours.
//
// Before commit, the spans are left to the agent. Those of last publishers are nobody's: they
// are dropped under the reason that is returned, unless that IsPassing, since its caller then
// refuses them and has them once more.
func (s *Publishers) PublishTogether(commit func(), parts ...Part) (reason Drop, ok bool) {
	spans := uint64(0)
	for i := range parts {
		spans += uint64(len(parts[i].Batch.Snapshots))
	}
	if spans == 0 {
		commit()
		return 0, true
	}
	entry := s.books.begin(spans, DropLeftToAgent)
	defer entry.end()
	isLast := parts[0].Publisher.last
	if isLast {
		entry.reason = DropBug
	}
	defer s.leaveAll(parts)
	aggregator := s.config.Aggregator
	if spans > uint64(aggregator.Drainers()*aggregator.RingSlots()) {
		reason = DropBatchTooLarge
	}
	for i := 0; i < len(parts) && reason == admitted; i++ {
		reason, _ = parts[i].Publisher.reserve(source{list: parts[i].Batch})
	}
	if reason != admitted {
		if isLast {
			entry.refuse(reason)
		}
		return reason, false
	}
	for i := range parts {
		parts[i].Publisher.fill()
	}
	entry.reason = DropBug
	commit()
	for i := range parts {
		parts[i].Publisher.publish(&entry)
	}
	return 0, true
}

func (s *Publishers) leaveAll(parts []Part) {
	for i := range parts {
		parts[i].Publisher.leave()
		parts[i].Publisher.finish(s.config.MaxBatch)
	}
}
