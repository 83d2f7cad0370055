// Package tables runs the parts of a daemon that count batches of spans: publishers, rings, and
// drainers with their tables. It has no sockets and no exporters, so it is all that is needed
// to measure counting within one process.
//
// # Concurrency and limits
//
// Publish is safe for concurrent use. Close must be called once, after all calls of Publish.
// Memory use is that of a daemon with defaults.
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

// Tables counts spans.
type Tables struct {
	aggregator *aggregate.Aggregator
	admitted   *admit.Publishers
	publishers *receiver.Publishers
}

// New starts the drainers.
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
	const noHashes = 1 // Publish recognizes no retries
	publishers := receiver.NewPublishers(admitted, receiver.MaxPublishers, noHashes, true)
	return &Tables{aggregator, admitted, publishers}, nil
}

// Publish publishes the batches of one request. It waits if the rings are full, as a sender
// with retries does.
func (t *Tables) Publish(batches iter.Seq2[span.Origin, *span.Batch]) error {
	for {
		reason, ok := t.publishers.Publish(batches, time.Now())
		switch {
		case ok:
			return nil
		case reason != admit.DropRingFull:
			return errors.New("publish spans: " + reason.String())
		}
		time.Sleep(100 * time.Microsecond) // about as long as the drainers need for some thousand items
	}
}

// Close stops the drainers, and returns the number of counted spans. It fails if that number is
// 0 or differs from the number of spans received and not dropped.
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
