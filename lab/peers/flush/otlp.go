package main

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// otlpWork is a workload for the OTLP metrics exporter.
type otlpWork struct {
	*work
	table    *aggregate.Table
	exporter *otlp.Exporter
	merger   export.Merger
}

func newOTLPWork(w *work) (*otlpWork, error) {
	endpoint, err := otlp.ParseEndpoint("http://localhost:4318")
	if err != nil {
		return nil, err
	}
	dimensions, err := points.ParseDimensions(statusDimension)
	if err != nil {
		return nil, err
	}
	exporter, err := otlp.New(otlp.Config{
		Variables: otlp.Variables{Endpoint: endpoint}, Dimensions: dimensions, Instance: instance,
		Version: "1",
	})
	if err != nil {
		return nil, fmt.Errorf("make exporter: %w", err)
	}
	return &otlpWork{
		work: w, exporter: exporter,
		table: aggregate.NewTable(aggregates, width, sketch.NewMemory(64<<20, sketch.CommonGrid())),
	}, nil
}

// statusDimension and instance are labels of the series on both sides, in addition to the name.
const (
	statusDimension = "http.response.status_code"
	instance        = "9d3c1c52-2b5d-4f7e-8a52-0c5c4d6f1a3e"
)

// ours counts everything and returns the flush to be measured.
func (w *otlpWork) ours() func() [][]byte {
	w.table.Reset()
	w.table.Begin(w.opened)
	for i := range w.slots {
		w.table.Add(&w.slots[i])
	}
	sealed := aggregate.NewSealed(1, w.opened, w.opened.Add(width), width, []span.Origin{{Env: "prod"}},
		w.keys, w.table)
	return func() (requests [][]byte) {
		defer w.merger.Forget()
		rows := w.merger.Merge(sealed)
		cycle := &export.Cycle{Sealed: sealed, Rows: rows, Limit: export.DefaultMaxPayloadBytes}
		encoded := w.exporter.Encode(cycle, func(p *export.Payload) { requests = append(requests, p.Body) })
		if lost := encoded.Unencodable; lost != 0 {
			panic(fmt.Sprintf("BUG: %d spans in no request", lost))
		}
		return requests
	}
}
