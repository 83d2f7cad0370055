package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/stats"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// shape is a distribution of durations.
type shape struct {
	name string
	draw func(*rand.Rand) uint64
}

var shapes = []shape{
	{"1 ms + exp. 20 ms", func(r *rand.Rand) uint64 { return uint64(1e6 + 20e6*r.ExpFloat64()) }},
	{"1 µs to 10 s, even in the logarithm", func(r *rand.Rand) uint64 {
		return uint64(1e3 * math.Exp(r.Float64()*math.Log(1e7)))
	}},
}

const width = 10 * time.Second

// work is one workload, and the memory that our side reuses for every cycle.
type work struct {
	shape  shape
	spans  int // spans per aggregate
	opened time.Time
	keys   []registry.KeyEntry
	slots  []aggregate.Slot
	table  *aggregate.Table
	merger export.Merger
	coder  *agent.Exporter
}

func newWork(shape shape, spans int) *work {
	w := &work{
		shape: shape, spans: spans, opened: time.Now().Truncate(width), coder: newCoder(),
		table: aggregate.NewTable(aggregates, width, sketch.NewMemory(16<<20, sketch.AgentGrid())),
	}
	for i := range aggregates {
		w.keys = append(w.keys, registry.KeyEntry{Key: span.Key{
			Service: fmt.Sprint("service-", i%4), Operation: "http.request", Resource: fmt.Sprint("GET /", i),
			Type: "web", Kind: "server", HTTPStatus: 200, TraceRoot: span.TraceRootTrue,
		}})
	}
	rnd := rand.New(rand.NewPCG(7, uint64(spans)))
	window := aggregate.NewWindow(0, w.opened, width)
	for i := range aggregates * spans {
		flags := span.TopLevel
		if rnd.IntN(20) == 0 {
			flags |= span.Error
		}
		end := w.opened.UnixNano()
		w.slots = append(w.slots, aggregate.Slot{
			Key: registry.KeyID(i % aggregates), Duration: shape.draw(rnd), End: end, Weight: 1, Flags: flags,
			Place: window.Place(end),
		})
	}
	return w
}

// newCoder returns our exporter, of which only the encoder is used.
func newCoder() *agent.Exporter {
	coder, err := agent.New(agent.Config{URL: agent.URL{Network: "unix", Address: "/nowhere"}})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return coder
}

// ours counts everything and returns the flush to be measured.
func (w *work) ours() func() [][]byte {
	w.table.Reset()
	w.table.Begin(w.opened)
	for i := range w.slots {
		w.table.Add(&w.slots[i])
	}
	sealed := aggregate.NewSealed(1, w.opened, w.opened.Add(width), width,
		[]span.Origin{{Service: "web", Env: "prod", Host: "host"}}, w.keys, w.table)
	return func() (bodies [][]byte) {
		defer w.merger.Forget()
		rows := w.merger.Merge(sealed)
		cycle := &export.Cycle{Sealed: sealed, Rows: rows, Limit: export.DefaultMaxPayloadBytes}
		made := w.coder.Encode(cycle, func(p *export.Payload) { bodies = append(bodies, p.Body) })
		if lost := made.Unencodable; lost != 0 {
			panic(fmt.Sprintf("BUG: %d spans in no payload", lost))
		}
		return bodies
	}
}

// agents is like ours, with the agent's code. Its spans must end in a single bucket that has
// begun, because the agent's code compares them with the current time.
func (w *work) agents() func() [][]byte {
	concentrator := stats.NewSpanConcentrator(&stats.SpanConcentratorConfig{
		ComputeStatsBySpanKind: true, BucketInterval: int64(width),
	}, w.opened)
	meta, metrics := map[string]string{
		"span.kind":        "server",
		"http.status_code": "200",
	}, map[string]float64{"_top_level": 1}
	for i := range w.slots {
		s := &w.slots[i]
		key := &w.keys[s.Key].Key
		counted, ok := concentrator.NewStatSpanWithConfig(stats.StatSpanConfig{
			Service: key.Service, Name: key.Operation, Resource: key.Resource, Type: key.Type,
			Start: s.End - int64(s.Duration), Duration: int64(s.Duration), Error: int32(s.Flags & span.Error),
			Meta: meta, Metrics: metrics,
		})
		if !ok {
			panic("BUG: the agent's code does not count a top-level span")
		}
		concentrator.AddSpan(counted, stats.PayloadAggregationKey{
			BaseService: "web", Env: "prod",
			Hostname: "host",
		}, "", nil, "")
	}
	return func() [][]byte {
		payloads := concentrator.Flush(time.Now().UnixNano(), true)
		if len(payloads) != 1 {
			panic(fmt.Sprintf("BUG: %d payloads of the agent's code", len(payloads)))
		}
		return [][]byte{encode(payloads[0])}
	}
}

// encode encodes the agent's message with the agent's code.
func encode(p *pb.ClientStatsPayload) []byte {
	body, err := p.MarshalMsg(nil)
	if err != nil {
		panic("BUG: encode the agent's payload: " + err.Error())
	}
	return body
}

const aggregates = 2048
