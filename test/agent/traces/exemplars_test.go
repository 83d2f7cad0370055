package traces

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	datadog "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/test/agent/realagent"
)

// lookedAt is an exporter that only records the exemplars of each cycle and the number of rows without
// any.
type lookedAt struct {
	*otlp.Exporter
	table *exemplars.Table
	found []exemplars.Exemplar
	rows  int
}

func (l *lookedAt) describe() export.Exporter {
	x := l.Exporter.Describe()
	x.Push = l
	return x
}

func (l *lookedAt) Encode(c *export.Cycle, emit func(*export.Payload)) export.Encoded {
	of := l.table.Seal(c.Cycle)
	for i := range c.Rows {
		for _, isError := range []bool{false, true} {
			if e := of.Find(uint32(c.Rows[i].KeyID()), isError); e.Span != 0 {
				l.found = append(l.found, e)
			}
		}
	}
	l.rows += len(c.Rows)
	return l.Exporter.Encode(&export.Cycle{Sealed: c.Sealed, Limit: c.Limit}, emit)
}

// TestExemplars_TracesSentByAgent sends random traces in every format, with all sampling
// priorities on any of their spans, through the daemon to the real agent. Each exemplar must be a span
// of a trace that the agent would send to the backend, with the same ID.
func TestExemplars_TracesSentByAgent(t *testing.T) {
	a := startAgent(t)
	endpoint, err := otlp.ParseEndpoint("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	exporter, err := otlp.New(otlp.Config{Variables: otlp.Variables{Endpoint: endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	l := &lookedAt{Exporter: exporter, table: exemplars.New(1 << 16)}
	d, socket := startDaemon(t, a, func(c *daemon.Config) {
		c.Exporters, c.Exemplars = []export.Exporter{l.describe()}, l.table
	})
	client := clientOf(t, socket)
	rnd := rand.New(rand.NewPCG(10, 98))
	for i := range uint64(600) {
		format := datadog.Format(i % 4)
		p := randomPayload(rnd, time.Now())
		for number, trace := range p.traces {
			for _, s := range trace {
				s.traceHigh, s.traceLow = 1<<60|i, 1000*(i+1)+uint64(number)
			}
			if len(trace) > 0 {
				trace[0].meta = append(trace[0].meta,
					[2]string{"_dd.p.tid", fmt.Sprintf("%016x", trace[0].traceHigh)})
			}
		}
		s := sent{
			path: paths[format], body: formats[format](p, rnd),
			header: map[string]string{"Content-Type": "application/msgpack"},
		}
		s.to(t, client)
	}
	d.Stop()
	for _, e := range l.found {
		id := realagent.SpanID{TraceHigh: e.TraceHigh, TraceLow: e.TraceLow, Span: e.Span}
		eventually.True(t, fmt.Sprintf("the agent sends %+v", id), func() bool { return a.Sent.Has(id) })
	}
	t.Logf("%d exemplars of %d rows", len(l.found), l.rows)
	if len(l.found) < l.rows/10 || l.rows == 0 {
		t.Errorf("only %d exemplars of %d rows: the comparison has little coverage", len(l.found), l.rows)
	}
}
