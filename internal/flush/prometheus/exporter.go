package prometheus

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/points"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
)

// Path is where it is scraped.
const Path = "/metrics/spans"

// Config is what an Exporter needs to know.
type Config struct {
	URL        string         // where it is scraped, for a person
	Dialect    points.Dialect // Spanmetrics or Tempo
	Dimensions points.Dimensions
	NoNative   bool             // no native buckets, which texts never have
	Bounds     []float64        // of classic buckets, which sketch.CheckBounds accepts; none if empty
	Exemplars  *exemplars.Table // of spans whose traces went on; nil: none
}

const (
	mostScrapes = 2                // at a time: one that hangs leaves room for another
	scrapeTime  = 10 * time.Second // until all of one is read
)

// Exporter is scraped. See the package comment.
type Exporter struct {
	config  Config
	limits  totals.Limits
	reader  *points.Reader
	keeper  *keeper
	last    atomic.Pointer[generation] // nil before the first
	unread  flush.Unread
	scrapes chan *scrape // those that nobody makes at present
	scraped atomic.Int64 // when the last one ended, seconds since the Unix epoch; 0: never
}

// generation is all series as they stood at the end of a cycle.
type generation struct {
	cycle  uint64
	series []*record
}

// New makes an exporter.
func New(c Config) *Exporter {
	x := &Exporter{config: c, scrapes: make(chan *scrape, mostScrapes)}
	x.reader = points.NewReader(points.Config{
		Dialect: c.Dialect, Dimensions: c.Dimensions, Labels: true, Bounds: c.Bounds,
	})
	calls, durations := x.reader.Metrics()
	for range mostScrapes {
		x.scrapes <- newScrape(newMessage(c.Bounds, !c.NoNative), calls, durations)
	}
	return x
}

// LimitTotals says how many series there may be. It comes before the first cycle.
func (x *Exporter) LimitTotals(l totals.Limits) { x.limits, x.keeper = l, newKeeper(x.reader, l) }

// Memory is the most that an exporter takes of some limits: totals, the last generation, and one
// that is all another for each scrape.
func (*Exporter) Memory(l totals.Limits) int {
	series := l.Series + l.Resources + 1
	each := recordBytes + (l.Buckets+l.Classic+1)*elementBytes
	generation := series*each + l.Bytes + (l.Resources+1)*l.ResourceBytes
	return l.Memory() + series*elementBytes + (1+mostScrapes)*generation + mostScrapes*scrapeBytes
}

// Name implements flush.Exporter.
func (*Exporter) Name() string { return "prometheus" }

// URL implements flush.Exporter.
func (x *Exporter) URL() string { return x.config.URL }

// Bounds are those of its classic buckets.
func (x *Exporter) Bounds() []float64 { return x.config.Bounds }

// Encode adds a cycle to the totals and publishes them. Its one payload has no body.
func (x *Exporter) Encode(
	sealed *aggregate.Sealed, rows []flush.Row, _ int, emit func(*flush.Payload),
) flush.Encoded {
	series, lost := x.keeper.count(sealed, rows, x.config.Exemplars.Seal(sealed.Cycle))
	x.last.Store(&generation{sealed.Cycle, series})
	emit(&flush.Payload{Spans: sealed.Spans() - lost})
	c := x.keeper.counts
	return flush.Encoded{
		Lost:   map[flush.Reason]uint64{flush.Unencodable: lost},
		Totals: flush.TotalsStats{Series: c.Series, Ended: c.Ended, Overflowed: c.Overflowed},
	}
}

// Deliver implements flush.Exporter: what Encode has published is there.
func (*Exporter) Deliver(context.Context, *flush.Payload) flush.Attempt { return flush.Attempt{} }

// Unread is the cycles that nobody has scraped.
func (x *Exporter) Unread() *flush.Unread { return &x.unread }

// Watch says that it is there, before the first payload too.
func (*Exporter) Watch(_ context.Context, link *flush.Link) { link.Answers() }

// ServeHTTP answers a scrape with the last generation.
func (x *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case s := <-x.scrapes:
		defer func() { x.scrapes <- s }()
		// Where a connection has no deadlines, its server's time-outs hold.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(scrapeTime))
		var series []*record
		end := func(bool) {} // before the first cycle there is nothing to be had
		if last := x.last.Load(); last != nil {
			series, end = last.series, x.unread.Begin(last.cycle)
		}
		err := s.answer(w, r, x.shown(series, time.Now().UnixNano()))
		end(err == nil && r.Method != http.MethodHead) // who asks for a head reads nothing
		if err != nil {
			panic(http.ErrAbortHandler) // nobody shall take it for whole
		}
		x.scraped.Store(time.Now().Unix())
	}
}

// shown is the series that are not too old at some time.
func (x *Exporter) shown(all []*record, now int64) []*record {
	return slices.DeleteFunc(slices.Clone(all), func(r *record) bool {
		return now-r.end >= int64(x.limits.Idle)
	})
}

// LastScrape is when somebody last had all of it, in seconds since the Unix epoch; 0 for never.
func (x *Exporter) LastScrape() int64 { return x.scraped.Load() }
