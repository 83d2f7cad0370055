package sdkmetrics

import (
	"hash/maphash"
	"sync"
	"time"
)

// MaxSeries bounds the series that are remembered.
const MaxSeries = 4096

// Bytes is what a listener takes at most, twice of what it remembers.
const Bytes = 2 * MaxSeries * 48

// Listener hears requests of metrics.
type Listener struct {
	now  func() time.Time
	seed maphash.Seed

	mu     sync.Mutex
	since  uint64 // when it began to listen, in nanoseconds of the epoch
	series map[uint64]last
	heard  bool
	sums   Sums
}

// last is what a series said last.
type last struct {
	start, time uint64
	value       float64
}

// NewListener makes one that has heard nothing.
func NewListener() *Listener { return newListener(time.Now) }

func newListener(now func() time.Time) *Listener {
	l := &Listener{now: now, seed: maphash.MakeSeed()}
	l.forget()
	return l
}

func (l *Listener) forget() {
	l.since, l.series = uint64(l.now().UnixNano()), map[uint64]last{}
}

// Hear takes a request of metrics in protobuf. What of it can't be read is not heard.
func (l *Listener) Hear(message []byte) {
	walk(message, l.take)
}

// Sums are what was said, and whether any SDK said anything.
func (l *Listener) Sums() (sums Sums, heard bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sums, l.heard
}

// take counts a point.
func (l *Listener) take(p *point) {
	var hash maphash.Hash
	hash.SetSeed(l.seed)
	for _, part := range append([][]byte{p.resource, p.name}, p.attributes...) {
		_, _ = hash.Write(part)
		_ = hash.WriteByte(0)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = true
	l.sums.count(p, uint64(l.growth(hash.Sum64(), p)))
}

// growth is what a series has grown by: nothing where the same report comes again.
func (l *Listener) growth(key uint64, p *point) float64 {
	before, isKnown := l.series[key]
	if !isKnown && len(l.series) >= MaxSeries {
		l.forget()
	}
	l.series[key] = last{p.start, p.time, p.value}
	switch {
	case !p.isCumulative && isKnown && p.time != 0 && p.time == before.time:
		return 0
	case !p.isCumulative:
		return p.value
	case isKnown && p.start == before.start && p.value >= before.value:
		return p.value - before.value
	case isKnown || p.start >= l.since:
		return p.value
	}
	return 0
}
