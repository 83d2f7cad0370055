package standin

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
)

// Totals are the totals accepted so far.
type Totals struct {
	Payloads uint64
	Probes   uint64 // payloads without fields, which check whether the agent is available
	Refused  uint64 // rejected requests, by a rule or by a fault
	Bytes    uint64 // bytes of the payloads
	Counts
	Rows []Row // rows in the order of their first appearance

	Counted, Uncounted TraceTotals // traces with and without the counted marker

	Problems     []string // first payload.MaxProblems problems
	ProblemCount uint64
}

// ledger collects totals.
type ledger struct {
	mu     sync.Mutex
	totals Totals
	rows   Rows
}

func (l *ledger) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.ProblemCount++
	if len(l.totals.Problems) < payload.MaxProblems {
		l.totals.Problems = append(l.totals.Problems, fmt.Sprintf(format, args...))
	}
}

func (l *ledger) refused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.Refused++
}

func (l *ledger) probed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.Probes++
}

// accept checks and counts a payload.
func (l *ledger) accept(p *payload.Payload, bytes int, weighted bool) {
	if reflect.ValueOf(p).Elem().IsZero() {
		l.probed()
		return
	}
	if len(p.Stats) == 0 {
		l.problem("a payload without buckets")
	}
	p.Check(weighted, l.problem, l.count)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.Payloads++
	l.totals.Bytes += uint64(bytes)
}

func (l *ledger) count(g *payload.Group, sketches ...*ddsketch.DDSketch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.add(l.rows.count(g, sketches...))
}

func (l *ledger) look() Totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.totals
	t.Problems = append([]string(nil), t.Problems...)
	t.Rows = l.rows.All()
	return t
}

// TraceTotals counts received requests with traces according to their headers. Their bodies are
// read to the end and not parsed.
type TraceTotals struct{ Requests, Traces, Bytes uint64 }

func (l *ledger) acceptTraces(more TraceTotals, counted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	into := &l.totals.Uncounted
	if counted {
		into = &l.totals.Counted
	}
	*into = TraceTotals{into.Requests + more.Requests, into.Traces + more.Traces, into.Bytes + more.Bytes}
}
