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
	URL        string         // scrape URL, for operators
	Dialect    points.Dialect // Spanmetrics or Tempo
	Dimensions points.Dimensions
	NoNative   bool             // disables native buckets, which text formats never contain
	Bounds     []float64        // bounds of classic buckets; optional
	Exemplars  *exemplars.Table // nil disables them
}

const (
	maxScrapes   = 2                // concurrent scrapes
	writeTimeout = 10 * time.Second // timeout for writing a response
)

// Exporter publishes statistics to be scraped. See the package comment.
type Exporter struct {
	config  Config
	limits  totals.Limits
	reader  *points.Reader
	keeper  *totalsKeeper
	last    atomic.Pointer[generation] // nil before the first cycle
	tracked export.Scrapes
	turns   turns
	scraped atomic.Int64 // end of the last scrape, seconds since the Unix epoch; 0: never
}

// generation contains all series as they were at the end of a cycle.
type generation struct {
	cycle  uint64
	series []*record
}

// New returns an exporter.
func New(c Config) *Exporter {
	x := &Exporter{config: c}
	x.reader = points.NewReader(points.Config{
		Dialect: c.Dialect, Dimensions: c.Dimensions, Labels: true, Bounds: c.Bounds,
	})
	calls, durations := x.reader.MetricNames()
	for range maxScrapes {
		x.turns.free = append(x.turns.free, newScrape(newMessage(c.Bounds, !c.NoNative), calls, durations))
	}
	return x
}

// LimitTotals sets the limits for series. It is called before the first cycle.
func (x *Exporter) LimitTotals(l totals.Limits) { x.limits, x.keeper = l, newTotalsKeeper(x.reader, l) }

// Memory returns the maximum memory of an exporter with the given limits: totals, the last
// generation, and another generation for each scrape.
func (*Exporter) Memory(l totals.Limits) int {
	series := l.Series + l.Resources + 1
	each := recordBytes + (l.Buckets+l.Classic+1)*elementBytes
	generation := series*each + l.Bytes + (l.Resources+1)*l.ResourceBytes
	return l.Memory() + series*elementBytes + (1+maxScrapes)*generation + maxScrapes*scrapeBytes +
		export.ScrapesBytes
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
	x.last.Store(&generation{c.Number, series})
	n := x.keeper.counts
	return export.Encoded{
		Unencodable: lost,
		Totals:      export.TotalsStats{Series: n.Series, Ended: n.Ended, Overflowed: n.Overflowed},
	}
}

// ServeHTTP answers a scrape with the last generation. It aborts the connection if the response
// could not be written completely, so that the scraper does not consider it complete.
func (x *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := x.turns.begin(w, r)
	if t == nil {
		return
	}
	defer t.end()
	// If the connection does not support deadlines, the server's timeouts apply.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	var series []*record
	end := func(bool) {} // before the first cycle there is nothing to scrape
	if last := x.last.Load(); last != nil {
		series, end = last.series, x.tracked.Begin(last.cycle)
	}
	err := t.buffers.writeResponse(t, r, x.recent(series, time.Now().UnixNano()))
	end(err == nil && r.Method != http.MethodHead) // a response to HEAD contains no series
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	x.scraped.Store(time.Now().Unix())
}

// recent returns the series that have been counted within the idle limit, and those that no scrape
// contains yet.
func (x *Exporter) recent(series []*record, now int64) []*record {
	firstUnscraped := x.tracked.FirstUnscraped()
	return slices.DeleteFunc(slices.Clone(series), func(r *record) bool {
		return now-r.end >= int64(x.limits.Idle) && r.cycle < firstUnscraped
	})
}

// LastScrape returns when a scrape was last written completely, in seconds since the Unix epoch, or
// 0 if never.
func (x *Exporter) LastScrape() int64 { return x.scraped.Load() }

// totalsKeeper maintains the running totals. After each cycle it creates a generation: the records of
// all series, sorted by labels, which scrapes read while the totals change.
type totalsKeeper struct {
	*points.Running
	reader *points.Reader
	end    int64            // end of the last cycle, nanoseconds since the Unix epoch
	order  []*totals.Series // all series, sorted by labels
	counts totals.Counts    // counts of the last cycle
}

func newTotalsKeeper(r *points.Reader, limits totals.Limits) *totalsKeeper {
	return &totalsKeeper{Running: points.NewRunning(r, limits), reader: r}
}

// count adds a cycle to the totals. It returns the next generation, and the number of spans that are
// in no total. slow contains the exemplars of the cycle.
func (k *totalsKeeper) count(c *export.Cycle, slow exemplars.Sealed) (generation []*record, lost uint64) {
	start := max(k.end, c.Start.UnixNano()) // the clock may have been set back
	k.end = max(start+1, c.End.UnixNano())
	k.reader.Begin(slow, start, k.end)
	lost = k.AddCycle(c, start, k.end)
	now := k.Counts()
	if hasOtherSeries := now.Series != k.counts.Series || now.Ended != k.counts.Ended; hasOtherSeries {
		k.sort(now.Series)
	}
	k.counts = now
	generation = make([]*record, len(k.order))
	for i, s := range k.order {
		if k.IsCounted(s) {
			s.Note = recordOf(s).next(s, c.Number, k.end, k.Slowest[s])
		}
		generation[i] = recordOf(s)
	}
	return generation, lost
}

// recordOf returns the last record of a series.
func recordOf(s *totals.Series) *record { return s.Note.(*record) }

// sort rebuilds order, given the number of series. A new series gets a record with its labels only;
// count replaces it.
func (k *totalsKeeper) sort(series int) {
	k.order = make([]*totals.Series, 0, series)
	for _, resource := range k.Resources() {
		for _, s := range resource.Series {
			k.order = append(k.order, s)
			if s.Note != nil {
				continue
			}
			labels := s.Attributes
			if !strings.HasPrefix(labels, resource.Encoded) { // an overflow series has no service
				labels = resource.Encoded + labels
			}
			s.Note = &record{labels: labels}
		}
	}
	slices.SortFunc(k.order, func(a, b *totals.Series) int {
		return strings.Compare(recordOf(a).labels, recordOf(b).labels)
	})
}
