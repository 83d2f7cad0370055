package sdkmetrics

import (
	"hash/maphash"
	"sync"
	"time"
)

// MaxSeries is the maximum number of stored series.
const MaxSeries = 4096

// seriesBytes is the memory of one stored series: its key and its report.
const seriesBytes = 40

// Bytes is the maximum memory of a Listener. A map can take twice the memory of its entries.
const Bytes = 2 * MaxSeries * seriesBytes

// Listener adds up the span counts that SDKs report in metrics requests.
type Listener struct {
	now  func() time.Time
	seed maphash.Seed

	mu     sync.Mutex
	since  uint64            // start of the period that series covers, in nanoseconds since the Unix epoch
	series map[uint64]report // last report per series
	found  bool              // whether any request had a metric of an SDK about its spans
	sums   Sums
}

// report is the last point of a series.
type report struct {
	time  uint64
	value float64
}

// NewListener returns a Listener with all sums at 0.
func NewListener() *Listener { return newListener(time.Now) }

func newListener(now func() time.Time) *Listener {
	l := &Listener{now: now, seed: maphash.MakeSeed()}
	l.reset()
	return l
}

// reset removes all stored series and starts a new period. The sums stay.
func (l *Listener) reset() {
	l.since, l.series = uint64(l.now().UnixNano()), map[uint64]report{}
}

// Hear processes a metrics request in protobuf: its points are added to the sums. It ignores unparsable parts of the request.
func (l *Listener) Hear(message []byte) {
	visitPoints(message, l.add)
}

// Sums returns the sums, and whether any SDK has reported metrics about its spans.
func (l *Listener) Sums() (sums Sums, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sums, l.found
}

// add adds a point to the sums.
func (l *Listener) add(p *point) {
	var hash maphash.Hash
	hash.SetSeed(l.seed)
	for _, part := range append([][]byte{p.resource, p.name}, p.attributes...) {
		_, _ = hash.Write(part)
		_ = hash.WriteByte(0)
	}
	if p.isCumulative {
		// Processes with equal resources, such as the workers of gunicorn, differ only in their start times.
		maphash.WriteComparable(&hash, p.start)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = true
	l.sums.count(p, uint64(l.increase(hash.Sum64(), p)))
}

// increase stores p as the last report of the series key, and returns the number of spans that p adds to the
// previous report of the series.
func (l *Listener) increase(key uint64, p *point) float64 {
	previous, isKnown := l.series[key]
	if !isKnown && len(l.series) >= MaxSeries {
		l.reset()
	}
	if p.isCumulative && isKnown && p.value < previous.value {
		return 0 // late, or of another process with the same resource and start time
	}
	l.series[key] = report{p.time, p.value}
	if !p.isCumulative {
		isRetry := isKnown && p.time != 0 && p.time == previous.time
		if isRetry {
			return 0
		}
		return p.value
	}
	switch {
	case isKnown:
		return p.value - previous.value
	case p.start >= l.since:
		return p.value
	}
	return 0 // the first report of an older process is only a baseline
}
