package bench

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/lab/bench/tables"
)

// wholeCounting does everything that a daemon does to count a body: parsing, the checksum for
// deduplication, publishing, and counting into tables.
type wholeCounting struct {
	counter *dd.Counter
	dedup   *bodies.DedupCache
	tables  *tables.Tables
	sums    uint64 // sum of all checksums, so that the compiler does not remove them
	spans   uint64
}

func newWholeCounting() (*wholeCounting, error) {
	into, err := tables.New()
	if err != nil {
		return nil, fmt.Errorf("make tables: %w", err)
	}
	return &wholeCounting{counter: dd.NewCounter(), dedup: bodies.NewDedupCache(4096), tables: into}, nil
}

// count counts a recording as one more request.
func (w *wholeCounting) count(r *recording, policy *dd.Policy) error {
	if err := r.count(w.counter, policy); err != nil {
		return err
	}
	w.sums += w.dedup.Hash(r.body)
	w.spans += uint64(r.counted)
	return w.tables.Publish(w.batches) //nolint:wrapcheck // it says what it does
}

func (w *wholeCounting) batches(yield func(span.Origin, *span.Batch) bool) {
	for service, batch := range w.counter.Batches {
		if !yield(span.Origin{Service: service, Lang: "go"}, batch) {
			return
		}
	}
}

// end stops the tables, and returns an error unless every span is in them.
func (w *wholeCounting) end() error {
	got, err := w.tables.Close()
	if err == nil && got != w.spans {
		return fmt.Errorf("count recordings: %d of %d spans are in the tables", got, w.spans)
	}
	return err //nolint:wrapcheck // it says what it does
}
