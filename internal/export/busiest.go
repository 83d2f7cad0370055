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

// The busiest aggregates are shown to people, so they are few, and cost a flush two passes over its rows
// and over the bins of a few of them.
const (
	busiestAggregates = 20
	busiestOrigins    = 20
	busiestLabel      = 200 // bytes of a label that are kept

	// A latency curve has the same axis at every flush and for every aggregate, so that two can be
	// compared: from 1 µs to 100 s, six columns per decade. The outer columns have everything beyond.
	curveDecades    = 8
	columnsADecade  = 6
	curveColumns    = curveDecades * columnsADecade
	curveFirstNanos = 1e3
)

// Busiest has the aggregates with most spans of the last sealed cycle that had any.
type Busiest struct {
	Cycle      uint64       `json:"cycle"`
	Start      time.Time    `json:"start"`
	End        time.Time    `json:"end"`
	Spans      uint64       `json:"spans"`      // of all aggregates
	Aggregates int          `json:"aggregates"` // keys that were met
	Rows       []BusyKey    `json:"rows"`       // busiest first
	Origins    []BusyOrigin `json:"origins"`    // busiest first
	Curve      CurveAxis    `json:"curve"`
}

// CurveAxis is the axis of every latency curve.
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
	Latency       []uint64 `json:"latency"`                 // spans by column of the curve, errors among them
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

// busiestReader reads the busiest aggregates of sealed cycles. Its sketches are reused;
// it has one user at a time.
type busiestReader struct {
	sketch, errors sketch.Sketch // of what is read, empty in between
	all, failed    []bin
	runs           []sketch.Run
	mappings       []mapping.IndexMapping // of the sealed cycle, by number
}

// bin is a non-empty bin of a sketch, with the duration that it stands for.
type bin struct{ seconds, count float64 }

// busiest reads a sealed cycle.
func (l *busiestReader) busiest(sealed *aggregate.Sealed, rows []Row) *Busiest {
	b := &Busiest{
		Cycle: sealed.Cycle, Start: sealed.Start, End: sealed.End,
		Rows: []BusyKey{}, Origins: []BusyOrigin{},
		Curve: CurveAxis{FirstSeconds: curveFirstNanos / 1e9, Decades: curveDecades, Columns: curveColumns},
	}
	keys := make([]uint64, len(sealed.Keys))
	for i := range rows {
		keys[rows[i].KeyID()] += rows[i].Spans
	}
	origins, distinct := make([]uint64, len(sealed.Origins)), make([]int, len(sealed.Origins))
	for id, spans := range keys {
		if spans > 0 {
			origin := sealed.Keys[id].Origin
			origins[origin] += spans
			distinct[origin]++
			b.Spans += spans
			b.Aggregates++
		}
	}
	b.Rows = l.keys(sealed, rows, largest(keys, busiestAggregates))
	for _, id := range largest(origins, busiestOrigins) {
		o := &sealed.Origins[id]
		b.Origins = append(b.Origins, BusyOrigin{
			Service: o.Service, Env: o.Env, Version: o.Version, Lang: o.Lang, Host: o.Host,
			Spans: origins[id], Aggregates: distinct[id],
		})
	}
	return b
}

// keys reads the counters and the sketches of the chosen keys.
func (l *busiestReader) keys(sealed *aggregate.Sealed, rows []Row, chosen []int) []BusyKey {
	of := make(map[registry.KeyID][]*Row, len(chosen))
	for _, id := range chosen {
		of[registry.KeyID(id)] = nil
	}
	for i := range rows {
		id := rows[i].KeyID()
		if before, is := of[id]; is {
			of[id] = append(before, &rows[i])
		}
	}
	l.mappings = l.mappings[:0]
	for _, m := range sealed.Mappings() {
		index, err := m.Library()
		if err != nil {
			panic("BUG: a sketch was merged whose mapping is none: " + err.Error())
		}
		l.mappings = append(l.mappings, index)
	}
	read := make([]BusyKey, 0, len(chosen))
	for _, id := range chosen {
		entry := &sealed.Keys[id]
		o, k := &sealed.Origins[entry.Origin], &entry.Key
		row := BusyKey{
			OriginService: o.Service, OriginEnv: o.Env,
			Service: k.Service, Operation: k.Operation, Resource: span.Text(k.Resource, busiestLabel),
			Type: k.Type, Kind: k.Kind, HTTPStatus: k.HTTPStatus, Latency: []uint64{},
		}
		l.read(&row, of[registry.KeyID(id)])
		read = append(read, row)
	}
	return read
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

// read adds up the counts of the key's rows.
func (l *busiestReader) read(k *BusyKey, rows []*Row) {
	l.all, l.failed = l.all[:0], l.failed[:0]
	for _, r := range rows {
		k.Hits += r.Hits
		k.Errors += r.Errors
		r.ReadOK(&l.sketch)
		r.ReadErrors(&l.sketch)
		r.ReadErrors(&l.errors)
		l.all = l.take(l.all, &l.sketch, r.Mapping())
		l.failed = l.take(l.failed, &l.errors, r.Mapping())
	}
	bins := l.all
	slices.SortFunc(bins, func(a, b bin) int { return cmp.Compare(a.seconds, b.seconds) })
	curve(l.failed, &k.ErrorLatency)
	curve(bins, &k.Latency)
	total := 0.0
	for _, b := range bins {
		total += b.count
	}
	// The rank is that of the sketch library, so that the figure is the same in Datadog.
	at := func(quantile float64) float64 {
		rank, below := quantile*(total-1), 0.0
		for _, b := range bins {
			if below += b.count; below > rank {
				return b.seconds
			}
		}
		return 0
	}
	k.P50, k.P95, k.P99 = at(.5), at(.95), at(.99)
}

// take appends the bins of a sketch, lowest first, and empties it.
func (l *busiestReader) take(to []bin, s *sketch.Sketch, mapping sketch.MappingID) []bin {
	if zeros := s.Zeros(); zeros > 0 {
		to = append(to, bin{0, zeros})
	}
	l.runs = s.AppendRuns(l.runs[:0], mapping)
	for _, run := range l.runs {
		for i, count := range s.Counts(run) {
			to = append(to, bin{l.mappings[mapping].Value(int(run.First)+i) / 1e9, float64(count)})
		}
	}
	s.Reset()
	return to
}

// curve adds bins to the columns of a curve, which stays nil without bins.
func curve(bins []bin, columns *[]uint64) {
	if len(bins) == 0 {
		return
	}
	*columns = make([]uint64, curveColumns)
	for _, b := range bins {
		(*columns)[column(b.seconds*1e9)] += uint64(b.count)
	}
}

// column is the column of a duration.
func column(nanoseconds float64) int {
	if nanoseconds <= curveFirstNanos {
		return 0
	}
	return int(min(math.Log10(nanoseconds/curveFirstNanos)*columnsADecade, curveColumns-1))
}
