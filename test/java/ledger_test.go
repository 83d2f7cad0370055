//go:build languages

package java

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/lab/standin"
	"google.golang.org/protobuf/proto"
)

// ledger is an agent with the statistics that it has received, summed over all buckets.
type ledger struct {
	agent *standin.Agent
	mu    sync.Mutex
	rows  map[key]*row
}

// key identifies a row: the sender of the spans and their labels.
type key struct {
	origin, service, operation, resource, kind, rest string
}

type row struct {
	hits, errors, topLevel, duration uint64
	ok, failed                       map[int32]float64 // spans by bin
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	l := &ledger{rows: map[key]*row{}}
	agent, err := standin.Start(standin.Config{OnPayload: func(r standin.Received) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, bucket := range r.Payload.Stats {
			for i := range bucket.Stats {
				if err := l.add(r.Payload, &bucket.Stats[i]); err != nil {
					t.Error(err)
				}
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	l.agent = agent
	t.Cleanup(func() { agent.Close() })
	return l
}

func (l *ledger) add(p *payload.Payload, g *payload.Group) error {
	at := key{
		origin: strings.Join([]string{
			p.Service, p.Env, p.Version, p.Lang, p.TracerVersion, p.RuntimeID,
			p.ContainerID,
		}, "|"),
		service: g.Service, operation: g.Name, resource: g.Resource, kind: g.SpanKind,
		rest: fmt.Sprint(g.Type, g.HTTPStatusCode, g.HTTPMethod, g.HTTPEndpoint, g.GRPCStatusCode,
			g.IsTraceRoot, g.PeerTags, g.AdditionalMetricTags),
	}
	r := l.rows[at]
	if r == nil {
		r = &row{ok: map[int32]float64{}, failed: map[int32]float64{}}
		l.rows[at] = r
	}
	r.hits += g.Hits
	r.errors += g.Errors
	r.topLevel += g.TopLevelHits
	r.duration += g.Duration
	if err := addBins(r.ok, g.OkSummary); err != nil {
		return err
	}
	return addBins(r.failed, g.ErrorSummary)
}

// addBins adds a sketch's bins. All sketches use the agent's mapping.
func addBins(bins map[int32]float64, sketch []byte) error {
	var s sketchpb.DDSketch
	if err := proto.Unmarshal(sketch, &s); err != nil {
		return err
	}
	for at, n := range s.GetPositiveValues().GetBinCounts() {
		bins[at] += n
	}
	for i, n := range s.GetPositiveValues().GetContiguousBinCounts() {
		if n != 0 {
			bins[s.GetPositiveValues().GetContiguousBinIndexOffset()+int32(i)] += n
		}
	}
	if s.GetZeroCount() != 0 {
		bins[-1<<31] += s.GetZeroCount()
	}
	return nil
}

// hits returns the number of spans in the wanted rows.
func (l *ledger) hits(isWanted func(key) bool) (all uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, r := range l.rows {
		if isWanted(at) {
			all += r.hits
		}
	}
	return all
}

func anyKey(key) bool { return true }

// isRequest reports whether each span under this key is a request handled by the application.
func isRequest(k key) bool { return k.operation == "http.server.request" }

func sum(all map[string]uint64) (total uint64) {
	for _, n := range all {
		total += n
	}
	return total
}

// equals compares two ledgers by row and bin.
func (l *ledger) equals(t *testing.T, oracle *ledger) {
	t.Helper()
	for at, want := range oracle.rows {
		got := l.rows[at]
		if got == nil {
			t.Errorf("%+v is missing, with %d hits", at, want.hits)
			continue
		}
		if got.hits != want.hits || got.errors != want.errors || got.topLevel != want.topLevel ||
			got.duration != want.duration ||
			!maps.Equal(got.ok, want.ok) || !maps.Equal(got.failed, want.failed) {
			t.Errorf("%+v:\n%+v, want\n%+v", at, *got, *want)
		}
	}
	for at, got := range l.rows {
		if oracle.rows[at] == nil {
			t.Errorf("%+v is too much, with %d hits", at, got.hits)
		}
	}
}
