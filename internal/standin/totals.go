package standin

import (
	"fmt"
	"math"
	"sync"

	"github.com/DataDog/sketches-go/ddsketch"
)

const (
	maxRows     = 10_000
	maxProblems = 100
)

// Other is the service and resource of the row that takes what has no room in
// a row of its own.
const Other = "(other)"

// Counts are sums over groups.
type Counts struct {
	Hits, Errors, TopLevel, Duration uint64
	Spans                            uint64 // by the sketches: unweighted
}

// Row is what arrived for one service and resource.
type Row struct {
	Service, Resource string
	Counts
	sketch *ddsketch.DDSketch
}

// Quantile is the latency in nanoseconds below which a share q of the row's
// spans lies, failed ones included; 0 if it has none.
func (r Row) Quantile(q float64) float64 {
	value, err := r.sketch.GetValueAtQuantile(q)
	if err != nil || math.IsNaN(value) {
		return 0
	}
	return value
}

// Totals is all that has been accepted so far.
type Totals struct {
	Payloads uint64
	Refused  uint64 // answered with a status other than 200, by rule or by fault
	Bytes    uint64 // of the payloads
	Counts
	Rows []Row // in the order of their first appearance

	Counted, Uncounted TraceTotals // traces, with and without the mark of counted ones

	Problems     []string // the first maxProblems of them
	ProblemCount uint64
}

// ledger collects totals.
type ledger struct {
	mu     sync.Mutex
	totals Totals
	rows   map[[2]string]*Row
	order  []*Row
}

func newLedger() *ledger { return &ledger{rows: map[[2]string]*Row{}} }

func (l *ledger) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.ProblemCount++
	if len(l.totals.Problems) < maxProblems {
		l.totals.Problems = append(l.totals.Problems, fmt.Sprintf(format, args...))
	}
}

func (l *ledger) refused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.Refused++
}

// accept checks and counts a payload.
func (l *ledger) accept(p *Payload, bytes int, weighted bool) {
	if len(p.Stats) == 0 {
		l.problem("a payload without buckets")
	}
	for i := range p.Stats {
		bucket := &p.Stats[i]
		bucket.check(l.problem)
		for j := range bucket.Stats {
			group := &bucket.Stats[j]
			ok, errs := group.check(weighted, l.problem)
			l.count(group, ok, errs)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.Payloads++
	l.totals.Bytes += uint64(bytes)
}

func (l *ledger) count(g *Group, sketches ...*ddsketch.DDSketch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := l.row(g.Service, g.Resource)
	counts := Counts{Hits: g.Hits, Errors: g.Errors, TopLevel: g.TopLevelHits, Duration: g.Duration}
	for _, sketch := range sketches {
		if sketch == nil {
			continue
		}
		counts.Spans += uint64(sketch.GetCount())
		// The mapping was compared when the sketch was decoded.
		_ = row.sketch.MergeWith(sketch)
	}
	row.add(counts)
	l.totals.add(counts)
}

func (c *Counts) add(more Counts) {
	c.Hits += more.Hits
	c.Errors += more.Errors
	c.TopLevel += more.TopLevel
	c.Duration += more.Duration
	c.Spans += more.Spans
}

// row finds or opens a row. The caller holds the lock.
func (l *ledger) row(service, resource string) *Row {
	key := [2]string{service, resource}
	if row, ok := l.rows[key]; ok {
		return row
	}
	if len(l.rows) >= maxRows {
		if key = [2]string{Other, Other}; l.rows[key] != nil {
			return l.rows[key]
		}
	}
	row := &Row{Service: key[0], Resource: key[1], sketch: newSketch()}
	l.rows[key] = row
	l.order = append(l.order, row)
	return row
}

func (l *ledger) look() Totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.totals
	t.Problems = append([]string(nil), t.Problems...)
	t.Rows = make([]Row, len(l.order))
	for i, row := range l.order {
		t.Rows[i] = *row
		t.Rows[i].sketch = row.sketch.Copy()
	}
	return t
}
