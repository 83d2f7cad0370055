package standin

import (
	"math"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
)

const maxRows = 10_000

// Other is the service and resource of the row for all groups over the limit.
const Other = "(other)"

// Counts are sums over groups.
type Counts struct {
	Hits, Errors, TopLevel, Duration uint64
	Spans                            uint64 // unweighted, from the sketches
}

// Row sums up the groups of one service and resource.
type Row struct {
	Service, Resource string
	Counts
	sketch *ddsketch.DDSketch
}

// Quantile returns the quantile q of the row's latencies in nanoseconds, including failed
// spans; 0 if it has no spans.
func (r Row) Quantile(q float64) float64 {
	value, err := r.sketch.GetValueAtQuantile(q)
	if err != nil || math.IsNaN(value) {
		return 0
	}
	return value
}

// Rows holds counts by service and resource: maxRows of them, and one for all others. It is not
// safe for concurrent use.
type Rows struct {
	byName map[[2]string]*Row
	order  []*Row
}

// Add counts all groups of a payload.
func (r *Rows) Add(p *payload.Payload) {
	p.Check(true, func(string, ...any) {}, func(g *payload.Group,
		sketches ...*ddsketch.DDSketch,
	) {
		r.count(g, sketches...)
	})
}

// All returns copies of the rows in the order of their first appearance.
func (r *Rows) All() []Row {
	rows := make([]Row, len(r.order))
	for i, row := range r.order {
		rows[i] = *row
		rows[i].sketch = row.sketch.Copy()
	}
	return rows
}

// count adds a group to its row, and returns the added counts. A sketch is nil if it could not
// be decoded.
func (r *Rows) count(g *payload.Group, sketches ...*ddsketch.DDSketch) Counts {
	row := r.row(g.Service, g.Resource)
	counts := Counts{Hits: g.Hits, Errors: g.Errors, TopLevel: g.TopLevelHits, Duration: g.Duration}
	for _, sketch := range sketches {
		if sketch == nil {
			continue
		}
		counts.Spans += uint64(sketch.GetCount())
		// The mappings are equal: decoding has checked that.
		_ = row.sketch.MergeWith(sketch)
	}
	row.add(counts)
	return counts
}

func (c *Counts) add(more Counts) {
	c.Hits += more.Hits
	c.Errors += more.Errors
	c.TopLevel += more.TopLevel
	c.Duration += more.Duration
	c.Spans += more.Spans
}

func (r *Rows) row(service, resource string) *Row {
	key := [2]string{service, resource}
	if row, ok := r.byName[key]; ok {
		return row
	}
	if len(r.byName) >= maxRows {
		if key = [2]string{Other, Other}; r.byName[key] != nil {
			return r.byName[key]
		}
	}
	if r.byName == nil {
		r.byName = map[[2]string]*Row{}
	}
	row := &Row{Service: key[0], Resource: key[1], sketch: payload.NewSketch()}
	r.byName[key] = row
	r.order = append(r.order, row)
	return row
}
