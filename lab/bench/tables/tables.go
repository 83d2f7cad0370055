// Package tables is what of a daemon takes batches of spans and counts them: publishers, rings, and
// the drainers with their tables. It has no sockets, and nobody gets the statistics, so whoever
// measures counting in one process has all of it and nothing else.
//
// # Threading and bounds
//
// Publish may be called from any goroutine, Close once and last. Its memory is that of a daemon
// with the defaults.
package tables

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Tables count spans.
type Tables struct {
	aggregator *aggregate.Aggregator
	admitted   *admit.Publishers
	publishers *receiver.Publishers
}

// New starts them.
func New() (*Tables, error) {
	counting := aggregate.DefaultConfig()
	counting.Deliver = func(s *aggregate.Sealed) {
		s.Delivery.Resolve(nil)
		s.Release()
	}
	aggregator, err := aggregate.New(counting)
	if err != nil {
		return nil, fmt.Errorf("make aggregator: %w", err)
	}
	admitting := admit.DefaultConfig()
	admitting.Aggregator = aggregator
	admitted, err := admit.New(admitting)
	if err != nil {
		return nil, fmt.Errorf("make publishers: %w", err)
	}
	aggregator.Start()
	return &Tables{aggregator, admitted, receiver.NewPublishers(admitted, receiver.MaxPublishers, true)}, nil
}

// Publish publishes the batches of one request. It waits for room in the rings, as a sender
// does that tries again.
func (t *Tables) Publish(batches iter.Seq2[span.Origin, *span.Batch]) error {
	for {
		reason, ok := t.publishers.Publish(batches, time.Now())
		switch {
		case ok:
			return nil
		case reason != admit.DropRingFull:
			return errors.New("publish spans: " + reason.String())
		}
		time.Sleep(100 * time.Microsecond) // as long as the drainers take for some thousand
	}
}

// Close ends them, and returns how many spans are in the tables. It fails where that is not all
// that were received and not dropped, or none.
func (t *Tables) Close() (spans uint64, err error) {
	t.publishers.Close()
	t.aggregator.Stop()
	in, counted := t.admitted.Stats(), t.aggregator.Stats()
	if spans = counted.Aggregated(); spans == 0 || spans != in.Received-in.DroppedTotal() {
		return spans, fmt.Errorf("count spans: %d are in the tables, %d were received and %d dropped", spans,
			in.Received, in.DroppedTotal())
	}
	return spans, nil
}
