package flush

import (
	"math"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// The busiest aggregates are for a person who looks, so they are bounded, and
// cost a flush two walks over its rows and the bins of a few of them: 0.2 to 0.7 ms for
// 2048 rows, a twentieth of encoding them, on a busy machine.
const (
	busiestAggregates = 20
	busiestOrigins    = 20
	busiestLabel      = 200 // bytes of a label that are kept

	// A latency curve has the same axis at every flush and for every aggregate,
	// so that two can be laid side by side: from 1 µs to 100 s, six columns a
	// decade. What is beyond an end is in the column there.
	curveDecades    = 8
	columnsADecade  = 6
	curveColumns    = curveDecades * columnsADecade
	curveFirstNanos = 1e3
)

// Busiest is the aggregates with most spans of the last sealed cycle that held
// any.
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

// looker reads the busiest aggregates of sealed cycles. Its sketches are reused;
// it has one user at a time.
type looker struct {
	all, failed aggregate.Sketch
	runs        []aggregate.Run
	bins        []bin
}

// piece is what one drainer counted of a key in one bucket.
type piece struct {
	table *aggregate.Table
	*aggregate.Aggregate
}

// bin is one of a sketch that is in use.
type bin struct {
	index int32
	count float64
}

// seconds is the duration that a bin stands for.
func (b bin) seconds() float64 { return sketchMapping.Value(int(b.index)) / 1e9 }

// busiest looks at a sealed cycle, and changes nothing of it.
func (l *looker) busiest(sealed *aggregate.Sealed) *Busiest {
	b := &Busiest{
		Cycle: sealed.Cycle, Start: sealed.Start, End: sealed.End,
		Rows: []BusyKey{}, Origins: []BusyOrigin{},
		Curve: CurveAxis{FirstSeconds: curveFirstNanos / 1e9, Decades: curveDecades, Columns: curveColumns},
	}
	keys := make([]uint64, len(sealed.Keys))
	eachPiece(sealed, func(p piece) { keys[p.Key] += p.Spans })
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
	b.Rows = l.rows(sealed, largest(keys, busiestAggregates))
	for _, id := range largest(origins, busiestOrigins) {
		o := &sealed.Origins[id]
		b.Origins = append(b.Origins, BusyOrigin{
			Service: o.Service, Env: o.Env, Version: o.Version, Lang: o.Lang, Host: o.Host,
			Spans: origins[id], Aggregates: distinct[id],
		})
	}
	return b
}

// rows reads the counters and the sketches of the chosen keys.
func (l *looker) rows(sealed *aggregate.Sealed, chosen []int) []BusyKey {
	pieces := make(map[aggregate.KeyID][]piece, len(chosen))
	for _, id := range chosen {
		pieces[aggregate.KeyID(id)] = nil
	}
	eachPiece(sealed, func(p piece) {
		if of, is := pieces[p.Key]; is {
			pieces[p.Key] = append(of, p)
		}
	})
	rows := make([]BusyKey, 0, len(chosen))
	for _, id := range chosen {
		entry := &sealed.Keys[id]
		row := busyKey(&sealed.Origins[entry.Origin], &entry.Key)
		l.read(&row, pieces[aggregate.KeyID(id)])
		rows = append(rows, row)
	}
	return rows
}

func eachPiece(sealed *aggregate.Sealed, visit func(piece)) {
	for _, table := range sealed.Tables {
		rows := table.Rows()
		for i := range rows {
			visit(piece{table, &rows[i]})
		}
	}
}

// largest are the places of the n largest counts that are not 0, the largest first.
func largest(counts []uint64, n int) (places []int) {
	for place, count := range counts {
		if count == 0 || len(places) == n && count <= counts[places[n-1]] {
			continue
		}
		at, _ := slices.BinarySearchFunc(places, count, func(p int, c uint64) int {
			if counts[p] >= c {
				return -1
			}
			return 1
		})
		if len(places) == n {
			places = places[:n-1]
		}
		places = slices.Insert(places, at, place)
	}
	return places
}

func busyKey(o *span.Origin, k *span.Key) BusyKey {
	return BusyKey{
		OriginService: o.Service, OriginEnv: o.Env,
		Service: k.Service, Operation: k.Operation, Resource: span.Text(k.Resource, busiestLabel),
		Type: k.Type, Kind: k.Kind, HTTPStatus: k.HTTPStatus,
		Latency: []uint64{},
	}
}

// read adds up what the key's pieces have counted.
func (l *looker) read(k *BusyKey, pieces []piece) {
	l.all.Reset()
	l.failed.Reset()
	for _, p := range pieces {
		k.Hits += p.Hits
		k.Errors += p.Errors
		p.table.OK(p.Aggregate, &l.all)
		p.table.Errors(p.Aggregate, &l.all)
		p.table.Errors(p.Aggregate, &l.failed)
	}
	l.curve(&l.failed, &k.ErrorLatency)
	bins := l.curve(&l.all, &k.Latency)
	total := l.all.Zeros()
	for _, b := range bins {
		total += b.count
	}
	// The rank is the sketch library's, so that a figure here is the one that
	// the agent's reader will see.
	at := func(quantile float64) float64 {
		rank, below := quantile*(total-1), l.all.Zeros()
		for _, b := range bins {
			if below > rank {
				return 0
			}
			if below += b.count; below > rank {
				return b.seconds()
			}
		}
		return 0
	}
	k.P50, k.P95, k.P99 = at(.5), at(.95), at(.99)
}

// curve adds a sketch to the columns of a curve, which stays nil where the sketch
// is empty, and returns the sketch's bins, lowest first.
func (l *looker) curve(s *aggregate.Sketch, columns *[]uint64) []bin {
	l.runs, l.bins = s.AppendRuns(l.runs[:0]), l.bins[:0]
	for _, run := range l.runs {
		for i, count := range s.Counts(run) {
			l.bins = append(l.bins, bin{run.First + int32(i), float64(count)})
		}
	}
	if len(l.bins) == 0 && s.Zeros() == 0 {
		return nil
	}
	*columns = make([]uint64, curveColumns)
	(*columns)[0] = uint64(s.Zeros())
	for _, b := range l.bins {
		(*columns)[column(b.seconds()*1e9)] += uint64(b.count)
	}
	return l.bins
}

// column is where a duration stands in a curve.
func column(nanoseconds float64) int {
	if nanoseconds <= curveFirstNanos {
		return 0
	}
	return int(min(math.Log10(nanoseconds/curveFirstNanos)*columnsADecade, curveColumns-1))
}

// Busiest is that of the last sealed cycle with spans. It is not to be written to.
func (f *Flusher) Busiest() Busiest { return *f.busiest.Load() }
