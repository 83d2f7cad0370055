package prometheus

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
)

// Path is where the exporter is scraped.
const Path = "/metrics/spans"

// Config configures an Exporter.
type Config struct {
	URL        string         // scrape URL, for operators
	Dialect    points.Dialect // Spanmetrics or Tempo
	Dimensions points.Dimensions
	NoNative   bool              // disables native buckets, which text formats never contain
	Bounds     []float64         // bounds of classic buckets; optional
	Exemplars  *exemplars.Table  // nil disables them
	Measures   []measure.Measure // attributes of spans whose values are counted; optional
	Objectives []string          // names of objectives

	Graph    *points.ServiceGraph // nil disables the service graph
	MaxEdges int                  // maximum number of edges of the graph
}

const (
	maxScrapes   = 2                // concurrent scrapes
	writeTimeout = 10 * time.Second // timeout for writing a response
)

// Exporter publishes statistics to be scraped. See the package comment.
type Exporter struct {
	config     Config
	limits     totals.Limits
	reader     *points.Reader
	keeper     *totalsKeeper
	edgeKeeper *totalsKeeper            // edges of the service graph; nil without one
	objectives objectives               // totals after the last cycle
	initial    objectiveRecords         // series of objectives before the first cycle
	snapshot   atomic.Pointer[snapshot] // nil before the first cycle
	scrapes    export.Scrapes
	queue      scrapeQueue
	lastScrape atomic.Int64 // end of the last complete scrape, seconds since the Unix epoch; 0: never
}

// snapshot contains all series as they were at the end of a cycle.
type snapshot struct {
	cycle   uint64
	seconds float64 // length of the cycle
	content
}

// content contains the series in a response to a scrape.
type content struct {
	series     []*record // sorted by metric and labels
	edges      []*record // edges of the service graph, sorted by labels
	objectives objectiveRecords
}

// New returns an exporter.
func New(c Config) *Exporter {
	x := &Exporter{config: c, objectives: newObjectives(c.Objectives)}
	x.initial = x.objectives.records()
	x.reader = points.NewReader(points.Config{
		Dialect: c.Dialect, Dimensions: c.Dimensions, Labels: true, Bounds: c.Bounds, Measures: c.Measures,
	})
	for range maxScrapes {
		x.queue.free = append(x.queue.free, newEncoder(x.reader.Metrics(), c.Bounds, !c.NoNative))
	}
	return x
}

// LimitTotals sets the limits for series. It is called before the first cycle.
func (x *Exporter) LimitTotals(l totals.Limits) {
	x.limits, x.keeper = l, newTotalsKeeper(x.reader, l)
	if c := &x.config; c.Graph != nil {
		reader := points.NewReader(points.Config{Graph: c.Graph, Labels: true, Bounds: c.Bounds})
		x.edgeKeeper = newTotalsKeeper(reader, points.EdgeLimits(l, c.MaxEdges))
	}
}

// Memory returns the maximum memory of an exporter with the given limits, without the service graph.
func (*Exporter) Memory(l totals.Limits) int {
	return seriesMemory(l) + maxScrapes*encoderBytes + export.ScrapesBytes
}

// GraphMemory returns the maximum memory of the service graph. l are the limits for series.
func (x *Exporter) GraphMemory(l totals.Limits) int {
	if x.config.Graph == nil {
		return 0
	}
	return seriesMemory(points.EdgeLimits(l, x.config.MaxEdges))
}

// seriesMemory returns the maximum number of bytes of series with the given limits. It is the sum for the running
// totals, for the last snapshot of them, and for one older snapshot per concurrent scrape.
func seriesMemory(l totals.Limits) int {
	const pointerBytes = 8
	overflowSeries := l.OverflowSeries()
	series := l.Series + overflowSeries
	labelBytes := l.Bytes + overflowSeries*l.ResourceBytes // l.Bytes does not limit overflow series
	histogramBytes := (l.Buckets + l.Classic) * bucketBytes

	sortedListBytes := series * pointerBytes
	totalsBytes := l.Memory() + sortedListBytes // l.Memory includes overflow series
	snapshotBytes := series*(recordBytes+histogramBytes+pointerBytes) + labelBytes
	return totalsBytes + (1+maxScrapes)*snapshotBytes
}

// Describe returns the destination for package export.
func (x *Exporter) Describe() export.Exporter {
	return export.Exporter{
		Name: "prometheus", URL: x.config.URL, Bounds: x.reader.Bounds(),
		Metrics: len(x.reader.Metrics()), HasValues: len(x.config.Measures) > 0, LimitTotals: x.LimitTotals,
		Pull: &export.Pull{Publish: x.Publish, Scrapes: &x.scrapes},
	}
}

// Publish adds a cycle to the running totals, and publishes a snapshot of them to be scraped.
func (x *Exporter) Publish(c *export.Cycle) export.Encoded {
	slowSpans := x.config.Exemplars.Seal(c.Cycle)
	series, lost := x.keeper.addCycle(c, slowSpans)
	counts := x.keeper.lastCounts
	stats := export.TotalsStats{Series: counts.Series, Ended: counts.Ended, Overflowed: counts.Overflowed}
	next := &snapshot{cycle: c.Number, seconds: c.End.Sub(c.Start).Seconds()}
	next.series, next.objectives = series, x.objectives.addCycle(c)
	if x.edgeKeeper != nil {
		next.edges, _ = x.edgeKeeper.addCycle(c, slowSpans)
		stats.Edges, stats.EdgesOverflowed = x.edgeKeeper.lastCounts.Series, x.edgeKeeper.lastCounts.Overflowed
	}
	x.snapshot.Store(next)
	return export.Encoded{Unencodable: lost, Totals: stats}
}

// ServeHTTP responds to a scrape with the series of the last snapshot. If the response cannot be written
// completely, it aborts the connection, so that the scraper does not take a part of the response for all of it.
func (x *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := x.queue.begin(w, r)
	if s == nil { // the client has disconnected
		return
	}
	defer s.end()
	// If the connection does not support deadlines, the server's timeouts apply.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := x.writeSnapshot(s, r); err != nil {
		panic(http.ErrAbortHandler)
	}
	x.lastScrape.Store(time.Now().Unix())
}

// writeSnapshot writes the last snapshot of the series as the response to a scrape, and records in x.scrapes
// whether it was written completely. Before the first snapshot, the response contains only objectives.
func (x *Exporter) writeSnapshot(s *scrape, r *http.Request) error {
	hasBody := r.Method != http.MethodHead
	last := x.snapshot.Load()
	if last == nil {
		err := s.encoder.writeResponse(s, r, &content{objectives: x.initial})
		if err == nil && hasBody {
			x.scrapes.RecordEmpty()
		}
		return err
	}
	endScrape := x.scrapes.Begin(last.cycle)
	now := time.Now().UnixNano()
	err := s.encoder.writeResponse(s, r, &content{
		series: x.withoutIdle(last.series, now), edges: x.withoutIdle(last.edges, now), objectives: last.objectives,
	})
	isComplete := err == nil && hasBody
	endScrape(isComplete)
	return err
}

// withoutIdle returns a copy of series without the idle ones. A series is idle if it got no spans for at least
// x.limits.Idle before now, and if a complete scrape contains all of its spans.
func (x *Exporter) withoutIdle(series []*record, now int64) []*record {
	firstUnscraped := x.scrapes.FirstUnscraped()
	return slices.DeleteFunc(slices.Clone(series), func(r *record) bool {
		isIdle := now-r.end >= int64(x.limits.Idle)
		isScraped := r.cycle < firstUnscraped
		return isIdle && isScraped
	})
}

// LastScrape returns when a scrape was last written completely, in seconds since the Unix epoch, or
// 0 if never.
func (x *Exporter) LastScrape() int64 { return x.lastScrape.Load() }

// totalsKeeper maintains the running totals of all series. It also maintains records, immutable copies of the totals
// that scrapes can read while the totals change.
type totalsKeeper struct {
	running      *points.Running
	reader       *points.Reader
	end          int64            // end of the last cycle, nanoseconds since the Unix epoch
	sortedSeries []*totals.Series // sorted by metric and labels
	lastCounts   totals.Counts    // counts of the last cycle
}

func newTotalsKeeper(r *points.Reader, limits totals.Limits) *totalsKeeper {
	return &totalsKeeper{running: points.NewRunning(r, limits), reader: r}
}

// addCycle adds the counts of a cycle, one export interval, to the running totals. It returns the records of all
// series, sorted by metric and labels, and the number of spans that it could not add. slowSpans are the exemplars of the cycle.
func (k *totalsKeeper) addCycle(c *export.Cycle, slowSpans exemplars.Sealed) (records []*record, lost uint64) {
	start := max(c.Start.UnixNano(), k.end) // not before the previous cycle, even if the clock was set back
	k.end = max(c.End.UnixNano(), start+1)
	k.reader.BeginCycle(slowSpans, start, k.end)
	lost = k.running.AddCycle(c, start, k.end)
	counts := k.running.Counts()
	haveSeriesChanged := counts.Series != k.lastCounts.Series || counts.Ended != k.lastCounts.Ended
	if haveSeriesChanged {
		k.sortSeries()
	}
	k.lastCounts = counts
	return k.updateRecords(c.Number), lost
}

// updateRecords updates the records of the series that have new spans in the given export interval. It returns the
// records of all series, sorted by metric and labels.
func (k *totalsKeeper) updateRecords(cycle uint64) []*record {
	records := make([]*record, len(k.sortedSeries))
	for i, series := range k.sortedSeries {
		if k.running.HasNewSpans(series) {
			k.updateRecord(series, cycle)
		}
		records[i] = recordOf(series)
	}
	return records
}

// updateRecord replaces the record of a series that was counted in the given export interval. If the interval has
// no exemplar for the series, the new record keeps the previous exemplar, because scrapes can be less frequent than
// intervals.
func (k *totalsKeeper) updateRecord(s *totals.Series, cycle uint64) {
	previous := recordOf(s)
	exemplar, hasExemplar := k.running.Slowest[s]
	if !hasExemplar {
		exemplar = previous.exemplar
	}
	s.UserData = newRecord(previous, s, cycle, k.end, exemplar)
}

// recordOf returns the last record of a series.
func recordOf(s *totals.Series) *record { return s.UserData.(*record) }

// sortSeries sets k.sortedSeries to all series, sorted by metric and labels. It creates records for new series, only
// with their metric and labels.
func (k *totalsKeeper) sortSeries() {
	k.sortedSeries = make([]*totals.Series, 0, k.running.Counts().Series)
	for _, resource := range k.running.Resources() {
		for _, series := range resource.Series {
			isNew := series.UserData == nil
			if isNew {
				series.UserData = &record{metric: series.Metric, labels: seriesLabels(resource, series)}
			}
			k.sortedSeries = append(k.sortedSeries, series)
		}
	}
	slices.SortFunc(k.sortedSeries, func(a, b *totals.Series) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), strings.Compare(recordOf(a).labels, recordOf(b).labels))
	})
}

// seriesLabels returns the encoded labels of a series, including the service. The attributes of an overflow series lack
// the service, which is the only label of the resource.
func seriesLabels(r *totals.Resource, s *totals.Series) string {
	if hasService := strings.HasPrefix(s.Attributes, r.Encoded); hasService {
		return s.Attributes
	}
	return r.Encoded + s.Attributes
}
