package sdkmetrics

import (
	"hash/maphash"
	"sync"
	"time"
)

// MaxSeries is the maximum number of series whose last report is stored.
const MaxSeries = 4096

// seriesBytes is the memory of one stored series: its hash and its last report.
const seriesBytes = 40

// Bytes is the maximum memory of an Accumulator. A map can take twice the memory of its entries.
const Bytes = 2 * MaxSeries * seriesBytes

// Accumulator adds up the span counts that SDKs report about themselves in metrics requests.
type Accumulator struct {
	now      func() time.Time
	hashSeed maphash.Seed

	mu          sync.Mutex
	periodStart uint64            // time since which reports are stored, in nanoseconds since the Unix epoch
	lastReports map[uint64]report // last report of each series, by hash of the series
	hasReports  bool              // whether any request had a metric of an SDK about its spans
	sums        Sums
}

// report is the time and the value of a data point.
type report struct {
	time  uint64
	value float64
}

// NewAccumulator returns an Accumulator with all sums at 0.
func NewAccumulator() *Accumulator { return newAccumulator(time.Now) }

func newAccumulator(now func() time.Time) *Accumulator {
	a := &Accumulator{now: now, hashSeed: maphash.MakeSeed()}
	a.removeReports()
	return a
}

// removeReports removes all stored reports, and starts a new period. The sums stay.
func (a *Accumulator) removeReports() {
	a.periodStart = uint64(a.now().UnixNano())
	a.lastReports = map[uint64]report{}
}

// Add adds the span counts in a metrics request to the sums. request is a protobuf message. Invalid parts of it are
// ignored.
func (a *Accumulator) Add(request []byte) {
	visitPoints(request, a.addPoint)
}

// Sums returns the sums. found is false if no SDK has reported metrics about its spans.
func (a *Accumulator) Sums() (sums Sums, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sums, a.hasReports
}

// addPoint adds the number of spans in a data point to the sums, without the spans that an earlier point of the same
// series has already reported.
func (a *Accumulator) addPoint(p *point) {
	series := a.hashSeries(p)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hasReports = true
	newSpans := a.replaceReport(series, p) // those that the previous report did not include
	a.sums.count(p, uint64(newSpans))
}

// hashSeries returns a hash that identifies the series of a data point: its resource, metric name and attributes.
// For a cumulative point it includes the start time, because several processes of one server can report equal
// resources.
func (a *Accumulator) hashSeries(p *point) uint64 {
	var hash maphash.Hash
	hash.SetSeed(a.hashSeed)
	for _, part := range append([][]byte{p.resource, p.name}, p.attributes...) {
		_, _ = hash.Write(part)
		_ = hash.WriteByte(0)
	}
	if p.isCumulative {
		maphash.WriteComparable(&hash, p.start)
	}
	return hash.Sum64()
}

// replaceReport stores p as the last report of its series, and returns the number of spans that no earlier report of
// the series included. If p begins a new series, but MaxSeries are stored, it first removes all stored reports.
func (a *Accumulator) replaceReport(series uint64, p *point) (newSpans float64) {
	previous, hasPrevious := a.lastReports[series]
	if hasPrevious && p.isOutdated(previous) {
		return 0
	}
	isFull := len(a.lastReports) >= MaxSeries
	if isFull && !hasPrevious {
		a.removeReports()
	}
	a.lastReports[series] = report{time: p.time, value: p.value}
	mayBeCounted := p.start < a.periodStart // with an earlier report of the series, which removeReports has removed
	switch {
	case !p.isCumulative:
		return p.value
	case hasPrevious:
		return p.value - previous.value
	case mayBeCounted:
		return 0
	}
	return p.value
}

// isOutdated reports whether p repeats or precedes the previous report of its series. A delta with the same time is a
// retry. A cumulative value that is lower is late, or of another process with the same resource and start time.
func (p *point) isOutdated(previous report) bool {
	if p.isCumulative {
		return p.value < previous.value
	}
	return p.time != 0 && p.time == previous.time
}
