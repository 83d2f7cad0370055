package prometheus

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
)

// Path is where the exporter is scraped.
const Path = "/metrics/spans"

// Config configures an Exporter.
type Config struct {
	URL        string         // where it is scraped, for a person
	Dialect    points.Dialect // Spanmetrics or Tempo
	Dimensions points.Dimensions
	NoNative   bool             // no native buckets, which texts never have
	Bounds     []float64        // of classic buckets, which sketch.CheckBounds accepts; none if empty
	Exemplars  *exemplars.Table // of spans whose traces are forwarded; nil: none
}

const (
	mostScrapes = 2                // at a time: one that hangs leaves room for another
	scrapeTime  = 10 * time.Second // until all of one is read
)

// Exporter publishes statistics to be scraped. See the package comment.
type Exporter struct {
	config  Config
	limits  totals.Limits
	reader  *points.Reader
	keeper  *keeper
	last    atomic.Pointer[generation] // nil before the first
	tracked export.Scrapes
	idle    chan *scrape // that serve no request at present
	scraped atomic.Int64 // when the last one ended, seconds since the Unix epoch; 0: never
}

// generation is all series as they were at the end of a cycle.
type generation struct {
	cycle  uint64
	series []*record
}

// New returns an exporter.
func New(c Config) *Exporter {
	x := &Exporter{config: c, idle: make(chan *scrape, mostScrapes)}
	x.reader = points.NewReader(points.Config{
		Dialect: c.Dialect, Dimensions: c.Dimensions, Labels: true, Bounds: c.Bounds,
	})
	calls, durations := x.reader.Metrics()
	for range mostScrapes {
		x.idle <- newScrape(newMessage(c.Bounds, !c.NoNative), calls, durations)
	}
	return x
}

// LimitTotals sets how many series there may be. It is called before the first cycle.
func (x *Exporter) LimitTotals(l totals.Limits) { x.limits, x.keeper = l, newKeeper(x.reader, l) }

// Memory is the maximum memory of an exporter with some limits: totals, the last generation, and a
// different one for each scrape.
func (*Exporter) Memory(l totals.Limits) int {
	series := l.Series + l.Resources + 1
	each := recordBytes + (l.Buckets+l.Classic+1)*elementBytes
	generation := series*each + l.Bytes + (l.Resources+1)*l.ResourceBytes
	return l.Memory() + series*elementBytes + (1+mostScrapes)*generation + mostScrapes*scrapeBytes
}

// Describe returns the destination for package export.
func (x *Exporter) Describe() export.Exporter {
	return export.Exporter{
		Name: "prometheus", URL: x.config.URL, Bounds: x.config.Bounds, LimitTotals: x.LimitTotals,
		Pull: &export.Pull{Publish: x.Publish, Scrapes: &x.tracked},
	}
}

// Publish adds a cycle to the totals and publishes a new generation of them.
func (x *Exporter) Publish(c *export.Cycle) export.Encoded {
	series, lost := x.keeper.count(c, x.config.Exemplars.Seal(c.Cycle))
	x.last.Store(&generation{c.Cycle, series})
	n := x.keeper.counts
	return export.Encoded{
		Lost:   map[export.Reason]uint64{export.Unencodable: lost},
		Totals: export.TotalsStats{Series: n.Series, Ended: n.Ended, Overflowed: n.Overflowed},
	}
}

// ServeHTTP answers a scrape with the last generation. A response that was cut short is aborted, so that
// the scraper does not take it for complete.
func (x *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case s := <-x.idle:
		defer func() { x.idle <- s }()
		// A connection without deadlines has its server's timeouts.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(scrapeTime))
		var series []*record
		end := func(bool) {} // before the first cycle there is nothing to scrape
		if last := x.last.Load(); last != nil {
			series, end = last.series, x.tracked.Begin(last.cycle)
		}
		err := s.answer(w, r, x.shown(series, time.Now().UnixNano()))
		end(err == nil && r.Method != http.MethodHead) // a response to HEAD has no series
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		x.scraped.Store(time.Now().Unix())
	}
}

// shown are the series that are not too old at a time.
func (x *Exporter) shown(all []*record, now int64) []*record {
	return slices.DeleteFunc(slices.Clone(all), func(r *record) bool {
		return now-r.end >= int64(x.limits.Idle)
	})
}

// LastScrape is when a scrape was last written completely, in seconds since the Unix epoch; 0 for never.
func (x *Exporter) LastScrape() int64 { return x.scraped.Load() }

// keeper keeps the totals, and makes generations of them.
type keeper struct {
	*points.Running
	reader *points.Reader
	end    int64            // of the last cycle, nanoseconds since the Unix epoch
	order  []*totals.Series // all of them, by their labels
	counts totals.Counts    // when order was made
}

func newKeeper(r *points.Reader, limits totals.Limits) *keeper {
	return &keeper{Running: points.NewRunning(r, limits), reader: r}
}

// count adds a cycle. It returns the generation after it, and the spans that are in no total.
func (k *keeper) count(c *export.Cycle, slow exemplars.Sealed) (generation []*record, lost uint64) {
	start := max(k.end, c.Start.UnixNano()) // even if the clock is set back
	k.end = max(start+1, c.End.UnixNano())
	k.reader.Begin(slow, start, k.end)
	lost = k.AddUp(c, start, k.end)
	if now := k.Counts(); now.Series != k.counts.Series || now.Ended != k.counts.Ended {
		k.sort(now.Series)
	}
	k.counts = k.Counts()
	generation = make([]*record, len(k.order))
	for i, s := range k.order {
		if k.IsCounted(s) {
			s.Note = recordOf(s).next(s, k.end, k.Slowest[s])
		}
		generation[i] = recordOf(s)
	}
	return generation, lost
}

func recordOf(s *totals.Series) *record { return s.Note.(*record) }

// sort rebuilds the order. A new series gets a record with nothing but its labels.
func (k *keeper) sort(series int) {
	k.order = make([]*totals.Series, 0, series)
	for _, of := range k.Resources() {
		for _, s := range of.Series {
			if k.order = append(k.order, s); s.Note != nil {
				continue
			}
			labels := s.Attributes
			if !strings.HasPrefix(labels, of.Encoded) { // an overflow series has no service
				labels = of.Encoded + labels
			}
			s.Note = &record{labels: labels}
		}
	}
	slices.SortFunc(k.order, func(a, b *totals.Series) int {
		return strings.Compare(recordOf(a).labels, recordOf(b).labels)
	})
}
