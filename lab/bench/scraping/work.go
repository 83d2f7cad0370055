package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	allSeries = 8192 // default of --max-aggregates
	services  = 8
	width     = 10 * time.Second
)

// bounds are those of the Collector's spanmetrics connector, and the default of
// --prometheus-buckets.
var bounds = []float64{.002, .004, .006, .008, .01, .05, .1, .2, .4, .8, 1, 1.4, 2, 5, 10, 15}

// work is a cycle with spans of all series, and our exporter, which has counted it once.
type work struct {
	spans    int // spans per series
	opened   time.Time
	keys     []registry.KeyEntry
	slots    []aggregate.Slot
	sealed   *aggregate.Sealed
	rows     []export.Row
	merger   export.Merger
	exporter *prometheus.Exporter
}

func newWork(spans int) (*work, error) {
	dimensions, err := points.ParseDimensions("http.response.status_code")
	if err != nil {
		return nil, err
	}
	w := &work{
		spans: spans, opened: time.Now().Truncate(width),
		exporter: prometheus.New(prometheus.Config{
			Dialect: points.Spanmetrics, Dimensions: dimensions, Bounds: bounds,
		}),
	}
	for i := range allSeries {
		w.keys = append(w.keys, registry.KeyEntry{Key: span.Key{
			Service: fmt.Sprint("service-", i%services), Operation: "http.request",
			Resource: fmt.Sprint("GET /articles/{id}/comments/", i), Type: "web", Kind: "server",
			HTTPStatus: 200,
		}})
	}
	w.draw()
	grid, err := sketch.GridWith(bounds)
	if err != nil {
		return nil, err
	}
	table := aggregate.NewTable(allSeries, width, sketch.NewMemory(256<<20, grid))
	table.Begin(w.opened)
	for i := range w.slots {
		table.Add(&w.slots[i])
	}
	w.sealed = aggregate.NewSealed(1, w.opened, w.opened.Add(width), width,
		[]span.Origin{{Env: "prod"}}, w.keys, table)
	w.rows = w.merger.Merge(w.sealed)
	w.exporter.LimitTotals(totals.Limits{
		Series: allSeries, Bytes: 16 << 20, Idle: time.Hour, Buckets: sketch.DefaultMaxBuckets,
		Classic: len(bounds) + 1,
	})
	return w, w.flush()
}

// draw generates the spans. Their durations are far enough apart for buckets at the finest
// scale in both implementations: client_golang limits the number of nonempty buckets, ours the
// number between the lowest and the highest.
func (w *work) draw() {
	rnd, window := rand.New(rand.NewPCG(7, uint64(w.spans))), aggregate.NewWindow(0, w.opened, width)
	for i := range allSeries * w.spans {
		end := w.opened.UnixNano()
		w.slots = append(w.slots, aggregate.Slot{
			Key: registry.KeyID(i % allSeries), End: end, Weight: 1, Place: window.Place(end),
			Duration: uint64(min(1e6+4e6*rnd.ExpFloat64(), 31e6)),
		})
	}
}

// flush adds the cycle to the totals.
func (w *work) flush() error {
	encoded := w.exporter.Publish(&export.Cycle{Sealed: w.sealed, Rows: w.rows})
	if encoded.Totals.Series != allSeries || encoded.Totals.Overflowed != 0 {
		return fmt.Errorf("count by the exporter: %+v", encoded)
	}
	return nil
}
