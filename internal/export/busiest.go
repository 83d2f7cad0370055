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
	maxBusyKeys    = 20
	maxBusyOrigins = 20
	busiestLabel   = 200 // maximum bytes of a label

	// All latency curves have the same axis, so that they can be compared: from 1 µs to 100 s, with six
	// columns per decade. The outer columns include everything beyond.
	curveDecades     = 8
	columnsPerDecade = 6
	curveColumns     = curveDecades * columnsPerDecade
	curveFirstNanos  = 1e3
)

// Busiest describes the label sets with the most spans, in the last export interval that had spans.
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

// BusyKey contains the statistics of the spans with one set of labels.
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

// BusyOrigin contains the statistics of one origin, a process that sends spans.
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
	mappings []mapping.IndexMapping // from bins to durations, by MappingID of the sealed cycle

	// Memory that is reused for each row.
	sketch, errorSketch sketch.Sketch // durations of all its spans, and of those with an error; empty between rows
	runs                []sketch.Run

	// Memory that is reused for each key: the non-empty bins of all its rows.
	bins, errorBins []bin
}

// bin is a non-empty bin of a sketch, with the duration that represents it.
type bin struct{ seconds, count float64 }

// findBusiest returns the aggregates and the origins with the most spans in a sealed cycle.
func (r *busiestReader) findBusiest(sealed *aggregate.Sealed, rows []Row) *Busiest {
	spansByKey := make([]uint64, len(sealed.Keys))
	for i := range rows {
		spansByKey[rows[i].KeyID()] += rows[i].Spans
	}
	b := &Busiest{
		Cycle: sealed.Cycle, Start: sealed.Start, End: sealed.End,
		Curve: CurveAxis{FirstSeconds: curveFirstNanos / 1e9, Decades: curveDecades, Columns: curveColumns},
	}
	for _, spans := range spansByKey {
		b.Spans += spans
		if spans > 0 {
			b.Aggregates++
		}
	}
	b.Rows = r.describeKeys(sealed, rows, indexesOfLargest(spansByKey, maxBusyKeys))
	b.Origins = busiestOrigins(sealed, spansByKey)
	return b
}

// busiestOrigins returns up to maxBusyOrigins origins, the processes that send spans, in descending order of their
// spans. spansByKey[i] is the number of spans with the labels sealed.Keys[i]. The result is never nil.
func busiestOrigins(sealed *aggregate.Sealed, spansByKey []uint64) []BusyOrigin {
	spansByOrigin := make([]uint64, len(sealed.Origins))
	keysByOrigin := make([]int, len(sealed.Origins))
	for keyID, spans := range spansByKey {
		if spans > 0 {
			origin := sealed.Keys[keyID].Origin
			spansByOrigin[origin] += spans
			keysByOrigin[origin]++
		}
	}
	busiest := []BusyOrigin{} // an empty list is not null in JSON
	for _, index := range indexesOfLargest(spansByOrigin, maxBusyOrigins) {
		o := &sealed.Origins[index]
		busiest = append(busiest, BusyOrigin{
			Service: o.Service, Env: o.Env, Version: o.Version, Lang: o.Lang, Host: o.Host,
			Spans: spansByOrigin[index], Aggregates: keysByOrigin[index],
		})
	}
	return busiest
}

// describeKeys returns the labels, counts and latencies of some keys. ids are indexes of sealed.Keys.
func (r *busiestReader) describeKeys(sealed *aggregate.Sealed, rows []Row, ids []int) []BusyKey {
	r.readMappings(sealed)
	rowsByKey := rowsOfKeys(rows, ids)
	keys := make([]BusyKey, 0, len(ids))
	for _, id := range ids {
		entry := &sealed.Keys[id]
		o := &sealed.Origins[entry.Origin]
		k := &entry.Key
		busy := BusyKey{
			OriginService: o.Service, OriginEnv: o.Env,
			Service: k.Service, Operation: k.Operation, Resource: span.Text(k.Resource, busiestLabel),
			Type: k.Type, Kind: k.Kind, HTTPStatus: k.HTTPStatus,
		}
		r.addCounts(&busy, rowsByKey[registry.KeyID(id)])
		keys = append(keys, busy)
	}
	return keys
}

// readMappings sets r.mappings to the mappings of the sealed cycle, in the representation of Datadog's sketch library.
func (r *busiestReader) readMappings(sealed *aggregate.Sealed) {
	r.mappings = r.mappings[:0]
	for _, m := range sealed.Mappings() {
		libraryMapping, err := m.Library()
		if err != nil {
			panic("BUG: a sketch with an invalid mapping was merged: " + err.Error())
		}
		r.mappings = append(r.mappings, libraryMapping)
	}
}

// rowsOfKeys returns the rows of the keys with the given IDs, by key.
func rowsOfKeys(rows []Row, ids []int) map[registry.KeyID][]*Row {
	rowsByKey := make(map[registry.KeyID][]*Row, len(ids))
	for _, id := range ids {
		rowsByKey[registry.KeyID(id)] = nil
	}
	for i := range rows {
		id := rows[i].KeyID()
		if keyRows, isIncluded := rowsByKey[id]; isIncluded {
			rowsByKey[id] = append(keyRows, &rows[i])
		}
	}
	return rowsByKey
}

// indexesOfLargest returns the indexes of the n largest counts in descending order of the counts.
// Counts of 0 are omitted.
func indexesOfLargest(counts []uint64, n int) (indexes []int) {
	for i, count := range counts {
		if count > 0 {
			indexes = append(indexes, i)
		}
	}
	slices.SortStableFunc(indexes, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	return indexes[:min(n, len(indexes))]
}

// addCounts adds the counts of a key's rows to k, and sets its percentiles and latency curves.
func (r *busiestReader) addCounts(k *BusyKey, rows []*Row) {
	r.bins = r.bins[:0]
	r.errorBins = r.errorBins[:0]
	for _, row := range rows {
		k.Hits += row.Hits
		k.Errors += row.Errors
		row.ReadOK(&r.sketch)
		row.ReadErrors(&r.sketch) // r.sketch contains all spans
		row.ReadErrors(&r.errorSketch)
		r.bins = r.moveBins(r.bins, &r.sketch, row.Mapping())
		r.errorBins = r.moveBins(r.errorBins, &r.errorSketch, row.Mapping())
	}
	slices.SortFunc(r.bins, func(a, b bin) int { return cmp.Compare(a.seconds, b.seconds) })
	k.P50 = percentile(r.bins, .5)
	k.P95 = percentile(r.bins, .95)
	k.P99 = percentile(r.bins, .99)
	k.Latency = latencyCurve(r.bins)
	if len(r.errorBins) > 0 {
		k.ErrorLatency = latencyCurve(r.errorBins)
	}
}

// percentile returns the duration in seconds below which the given fraction of the spans is, for example the 95th
// percentile for 0.95. It returns 0 if there are no spans. bins must be sorted by duration. The rank is computed as
// in Datadog's sketch library, so that Datadog shows the same value.
func percentile(bins []bin, fraction float64) float64 {
	total := 0.0
	for _, b := range bins {
		total += b.count
	}
	rank := fraction * (total - 1)
	cumulative := 0.0
	for _, b := range bins {
		cumulative += b.count
		if cumulative > rank {
			return b.seconds
		}
	}
	return 0
}

// moveBins appends the non-empty bins of the sketch s to bins, and returns the result. mapping determines which
// duration a bin stands for. It also empties the sketch.
func (r *busiestReader) moveBins(bins []bin, s *sketch.Sketch, mapping sketch.MappingID) []bin {
	if zeros := s.Zeros(); zeros > 0 {
		bins = append(bins, bin{seconds: 0, count: zeros})
	}
	binDurations := r.mappings[mapping]
	r.runs = s.Runs(r.runs, mapping)
	for _, run := range r.runs { // each a sequence of adjacent bins
		for i, count := range s.Counts(run) {
			nanoseconds := binDurations.Value(int(run.First) + i)
			bins = append(bins, bin{seconds: nanoseconds / 1e9, count: float64(count)})
		}
	}
	s.Reset()
	return bins
}

// latencyCurve returns the number of spans in each of curveColumns ranges of duration, for example from 10 to 15
// ms. It returns an empty list, not nil, if there are no bins.
func latencyCurve(bins []bin) []uint64 {
	if len(bins) == 0 {
		return []uint64{}
	}
	columns := make([]uint64, curveColumns)
	for _, b := range bins {
		nanoseconds := b.seconds * 1e9
		columns[curveColumn(nanoseconds)] += uint64(b.count)
	}
	return columns
}

// curveColumn returns the column of a latency curve that contains a duration, from 0 to curveColumns-1. The curve has
// columnsPerDecade columns for each factor of ten, and begins at curveFirstNanos. Shorter durations are in the first
// column. Durations after the end of the curve are in the last column.
func curveColumn(nanoseconds float64) int {
	if nanoseconds <= curveFirstNanos {
		return 0
	}
	column := math.Log10(nanoseconds/curveFirstNanos) * columnsPerDecade
	return int(min(column, curveColumns-1))
}
