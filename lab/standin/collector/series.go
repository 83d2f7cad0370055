package collector

import (
	"math"
)

// maxSeries limits the number of rows.
const maxSeries = 10_000

// Other is the name of the row for all series over that limit.
const Other = "(other)"

// Counts are sums over points.
type Counts struct {
	Calls    uint64 // calls metric, if there is one
	Spans    uint64 // count of the histograms
	Errors   uint64 // count of the histograms of failed spans
	Duration uint64 // nanoseconds
}

// Row sums up the spans of one service and span name.
type Row struct {
	Service, Name string
	Counts
	buckets map[int32]uint64 // counts by bucket index at rowScale
	zeros   uint64
}

// rowScale is the scale of a row's buckets. No exporter under test sends a finer one.
const rowScale = 5

// Quantile returns the upper bound, in nanoseconds, of the bucket that contains the quantile q
// of the row's spans.
func (r *Row) Quantile(q float64) float64 {
	rank := uint64(math.Ceil(q * float64(r.Spans)))
	below, lowest, highest := r.zeros, int32(math.MaxInt32), int32(math.MinInt32)
	for index := range r.buckets {
		lowest, highest = min(lowest, index), max(highest, index)
	}
	if below >= rank {
		return 0
	}
	for index := lowest; index <= highest; index++ {
		if below += r.buckets[index]; below >= rank {
			return 1e9 * math.Exp2(math.Ldexp(float64(index+1), -rowScale))
		}
	}
	return 0
}

// Rows holds counts by service and span name. It is not safe for concurrent use.
type Rows struct {
	byName map[[2]string]*Row
	order  []*Row
}

// Add counts all series of a request with delta temporality.
func (r *Rows) Add(request Request) {
	c := checks{problem: func(string, ...any) {}}
	c.request(request, func(service string, m *Metric, p, before *Point) { r.count(service, m, p, before) })
}

// All returns the rows in the order of their first appearance.
func (r *Rows) All() []*Row { return r.order }

// count adds a point to its row, minus the previous cumulative point if there is one, and
// returns the added counts.
func (r *Rows) count(service string, m *Metric, p, before *Point) (counts Counts) {
	name, _ := attribute(p.Attributes, "span.name").(string)
	row := r.row(service, name)
	counts = m.counts(p)
	row.eachBucket(p, func(bucket *uint64, n uint64) { *bucket += n })
	if before != nil {
		counts.subtract(m.counts(before))
		row.eachBucket(before, func(bucket *uint64, n uint64) { *bucket -= n })
	}
	row.add(counts)
	return counts
}

// counts returns the counts of a point.
func (m *Metric) counts(p *Point) (counts Counts) {
	if !m.IsHistogram {
		return Counts{Calls: uint64(max(0, p.Value))}
	}
	counts = Counts{Spans: p.Count, Duration: uint64(math.Round(max(0, p.Sum) * 1e9))}
	if attribute(p.Attributes, "status.code") == "STATUS_CODE_ERROR" {
		counts.Errors = p.Count
	}
	return counts
}

// eachBucket calls visit with the row's bucket for each bucket of a point. The row's bucket for
// a coarser one is the bucket at its upper end.
func (r *Row) eachBucket(p *Point, visit func(bucket *uint64, n uint64)) {
	visit(&r.zeros, p.Zeros)
	for i, n := range p.Counts {
		index := p.Offset + int32(i)
		if finer := rowScale - p.Scale; finer > 0 {
			index = (index+1)<<finer - 1
		}
		bucket := r.buckets[index]
		visit(&bucket, n)
		if r.buckets[index] = bucket; bucket == 0 {
			delete(r.buckets, index)
		}
	}
}

func (c *Counts) subtract(less Counts) {
	c.Calls -= less.Calls
	c.Spans -= less.Spans
	c.Errors -= less.Errors
	c.Duration -= less.Duration
}

func (c *Counts) add(more Counts) {
	c.Calls += more.Calls
	c.Spans += more.Spans
	c.Errors += more.Errors
	c.Duration += more.Duration
}

func (r *Rows) row(service, name string) *Row {
	key := [2]string{service, name}
	if row, ok := r.byName[key]; ok {
		return row
	}
	if len(r.byName) >= maxSeries {
		if key = [2]string{Other, Other}; r.byName[key] != nil {
			return r.byName[key]
		}
	}
	if r.byName == nil {
		r.byName = map[[2]string]*Row{}
	}
	row := &Row{Service: key[0], Name: key[1], buckets: map[int32]uint64{}}
	r.byName[key] = row
	r.order = append(r.order, row)
	return row
}
