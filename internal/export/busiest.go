package export

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Limits of the busiest aggregates, which are for display. They cost a flush two passes over its rows and
// over the bins of a few of them.
const (
	busiestAggregates = 20
	busiestOrigins    = 20
	busiestLabel      = 200 // maximum bytes of a label

	// All latency curves have the same axis, so that they can be compared: from 1 µs to 100 s, with six
	// columns per decade. The outer columns include everything beyond.
	curveDecades    = 8
	columnsADecade  = 6
	curveColumns    = curveDecades * columnsADecade
	curveFirstNanos = 1e3
)

// Busiest contains the aggregates with the most spans of the last sealed cycle that had spans.
type Busiest struct {
	Cycle      uint64       `json:"cycle"`
	Start      time.Time    `json:"start"`
	End        time.Time    `json:"end"`
	Spans      uint64       `json:"spans"`      // total of all aggregates
	Aggregates int          `json:"aggregates"` // number of keys with spans
	Rows       []BusyKey    `json:"rows"`       // busiest first
	Origins    []BusyOrigin `json:"origins"`    // busiest first
	Curve      CurveAxis    `json:"curve"`
}

// CurveAxis is the axis of all latency curves.
type CurveAxis struct {
	FirstSeconds float64 `json:"first_seconds"`
	Decades      int     `json:"decades"`
	Columns      int     `json:"columns"`
}

// BusyKey is one aggregate.
type BusyKey struct {
	OriginService string   `json:"origin_service"`
	OriginEnv     string   `json:"origin_env"`
	Service       string   `json:"service"`
	Operation     string   `json:"operation"`
	Resource      string   `json:"resource"`
	Type          string   `json:"type"`
	Kind          string   `json:"kind"`
	HTTPStatus    uint32   `json:"http_status"`
	Hits          float64  `json:"hits"`
	Errors        float64  `json:"errors"`
	P50           float64  `json:"p50_seconds"`
	P95           float64  `json:"p95_seconds"`
	P99           float64  `json:"p99_seconds"`
	Latency       []uint64 `json:"latency"`                 // spans by column of the curve, including errors
	ErrorLatency  []uint64 `json:"error_latency,omitempty"` // errors by column
}

// BusyOrigin is one origin.
type BusyOrigin struct {
	Service    string `json:"service"`
	Env        string `json:"env"`
	Version    string `json:"version"`
	Lang       string `json:"lang"`
	Host       string `json:"host"`
	Spans      uint64 `json:"spans"`
	Aggregates int    `json:"aggregates"`
}

// busiestReader computes the busiest aggregates of sealed cycles. It reuses its sketches and is not
// safe for concurrent use.
type busiestReader struct {
	sketch, errors sketch.Sketch // scratch, empty between uses
	all, failed    []bin
	runs           []sketch.Run
	mappings       []mapping.IndexMapping // of the sealed cycle, by MappingID
}

// bin is a non-empty bin of a sketch, with the duration that represents it.
type bin struct{ seconds, count float64 }

// busiest returns the busiest aggregates and origins of a sealed cycle.
func (l *busiestReader) busiest(sealed *aggregate.Sealed, rows []Row) *Busiest {
	b := &Busiest{
		Cycle: sealed.Cycle, Start: sealed.Start, End: sealed.End,
		Rows: []BusyKey{}, Origins: []BusyOrigin{},
		Curve: CurveAxis{FirstSeconds: curveFirstNanos / 1e9, Decades: curveDecades, Columns: curveColumns},
	}
	spansByKey := make([]uint64, len(sealed.Keys))
	for i := range rows {
		spansByKey[rows[i].KeyID()] += rows[i].Spans
	}
	spansByOrigin, keysByOrigin := make([]uint64, len(sealed.Origins)), make([]int, len(sealed.Origins))
	for id, spans := range spansByKey {
		if spans > 0 {
			origin := sealed.Keys[id].Origin
			spansByOrigin[origin] += spans
			keysByOrigin[origin]++
			b.Spans += spans
			b.Aggregates++
		}
	}
	b.Rows = l.keys(sealed, rows, largest(spansByKey, busiestAggregates))
	for _, id := range largest(spansByOrigin, busiestOrigins) {
		o := &sealed.Origins[id]
		b.Origins = append(b.Origins, BusyOrigin{
			Service: o.Service, Env: o.Env, Version: o.Version, Lang: o.Lang, Host: o.Host,
			Spans: spansByOrigin[id], Aggregates: keysByOrigin[id],
		})
	}
	return b
}

// keys returns the counts and latencies of the chosen keys.
func (l *busiestReader) keys(sealed *aggregate.Sealed, rows []Row, chosen []int) []BusyKey {
	rowsByKey := make(map[registry.KeyID][]*Row, len(chosen))
	for _, id := range chosen {
		rowsByKey[registry.KeyID(id)] = nil
	}
	for i := range rows {
		id := rows[i].KeyID()
		if keyRows, isChosen := rowsByKey[id]; isChosen {
			rowsByKey[id] = append(keyRows, &rows[i])
		}
	}
	l.mappings = l.mappings[:0]
	for _, m := range sealed.Mappings() {
		index, err := m.Library()
		if err != nil {
			panic("BUG: a sketch with an invalid mapping was merged: " + err.Error())
		}
		l.mappings = append(l.mappings, index)
	}
	keys := make([]BusyKey, 0, len(chosen))
	for _, id := range chosen {
		entry := &sealed.Keys[id]
		o, k := &sealed.Origins[entry.Origin], &entry.Key
		row := BusyKey{
			OriginService: o.Service, OriginEnv: o.Env,
			Service: k.Service, Operation: k.Operation, Resource: span.Text(k.Resource, busiestLabel),
			Type: k.Type, Kind: k.Kind, HTTPStatus: k.HTTPStatus, Latency: []uint64{},
		}
		l.read(&row, rowsByKey[registry.KeyID(id)])
		keys = append(keys, row)
	}
	return keys
}

// largest returns the indices of the n largest counts that are not 0, the largest first.
func largest(counts []uint64, n int) (places []int) {
	for place, count := range counts {
		if count > 0 {
			places = append(places, place)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	return places[:min(n, len(places))]
}

// read sets the counts and latencies of a key from its rows.
func (l *busiestReader) read(k *BusyKey, rows []*Row) {
	l.all, l.failed = l.all[:0], l.failed[:0]
	for _, r := range rows {
		k.Hits += r.Hits
		k.Errors += r.Errors
		r.ReadOK(&l.sketch)
		r.ReadErrors(&l.sketch)
		r.ReadErrors(&l.errors)
		l.all = l.moveBins(l.all, &l.sketch, r.Mapping())
		l.failed = l.moveBins(l.failed, &l.errors, r.Mapping())
	}
	bins := l.all
	slices.SortFunc(bins, func(a, b bin) int { return cmp.Compare(a.seconds, b.seconds) })
	curve(l.failed, &k.ErrorLatency)
	curve(bins, &k.Latency)
	total := 0.0
	for _, b := range bins {
		total += b.count
	}
	// The rank is defined as in the sketch library, so that Datadog shows the same value.
	percentile := func(quantile float64) float64 {
		rank, cumulative := quantile*(total-1), 0.0
		for _, b := range bins {
			if cumulative += b.count; cumulative > rank {
				return b.seconds
			}
		}
		return 0
	}
	k.P50, k.P95, k.P99 = percentile(.5), percentile(.95), percentile(.99)
}

// moveBins appends the bins of a sketch, lowest first, and empties the sketch.
func (l *busiestReader) moveBins(bins []bin, s *sketch.Sketch, mapping sketch.MappingID) []bin {
	if zeros := s.Zeros(); zeros > 0 {
		bins = append(bins, bin{0, zeros})
	}
	l.runs = s.AppendRuns(l.runs[:0], mapping)
	for _, run := range l.runs {
		for i, count := range s.Counts(run) {
			bins = append(bins, bin{l.mappings[mapping].Value(int(run.First)+i) / 1e9, float64(count)})
		}
	}
	s.Reset()
	return bins
}

// curve adds bins to the columns of a curve, which stays nil if there are no bins.
func curve(bins []bin, columns *[]uint64) {
	if len(bins) == 0 {
		return
	}
	*columns = make([]uint64, curveColumns)
	for _, b := range bins {
		(*columns)[column(b.seconds*1e9)] += uint64(b.count)
	}
}

// column returns the column of a duration.
func column(nanoseconds float64) int {
	if nanoseconds <= curveFirstNanos {
		return 0
	}
	return int(min(math.Log10(nanoseconds/curveFirstNanos)*columnsADecade, curveColumns-1))
}
