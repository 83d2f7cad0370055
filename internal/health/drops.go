package health

import (
	"log/slog"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest"
)

// DropLog says in one line now and then how many spans were dropped, why, and which
// tracer lost most of them. It says nothing while none are.
type DropLog struct {
	Spans   func() map[string]uint64 // dropped so far, by reason; a new map each time
	Tracers func() []ingest.Tracer   // those that are connected
	Log     *slog.Logger

	last      map[string]uint64
	ofTracers map[connected]uint64
	quiet     int // looks since the last line
}

// connected tells connections apart.
type connected struct {
	pid   int32
	since time.Time
}

// A line comes soon after the first loss, and at most one a minute: drops go on for as
// long as their cause does, and the counters say the rest.
const (
	dropLogLooks = 5 * time.Second
	dropLogEvery = 12 // looks
)

// Run writes until stop is closed, and then what has not been said yet.
func (l *DropLog) Run(stop <-chan struct{}) {
	l.last, l.quiet = l.Spans(), dropLogEvery
	ticker := time.NewTicker(dropLogLooks)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if l.quiet++; l.quiet >= dropLogEvery {
				l.line()
			}
		case <-stop:
			l.line()
			return
		}
	}
}

// line writes what was dropped since the last one.
func (l *DropLog) line() {
	now := l.Spans()
	delete(now, leftToAgent)
	fields := since(l.last, now)
	if len(fields) == 0 {
		return
	}
	l.last, l.quiet = now, 0
	most, spans := l.most()
	args := []any{slog.Group("spans_since_last_line", fields...)}
	if spans > 0 {
		args = append(args, "mostly", slog.GroupValue(slog.String("service", most.Service),
			slog.String("client", most.Client),
			slog.Int("pid", int(most.PID)), slog.String("container", most.Container)), "mostly_spans", spans)
	}
	l.Log.Warn("spans were dropped; docs/metrics.md says of each reason what to do, at "+
		"spanstatsd_spans_dropped_total", args...)
}

// leftToAgent is a reason that loses nothing: the agent counts those spans.
const leftToAgent = "left_to_agent"

// most is the connected tracer that lost most since the last line, and how many.
func (l *DropLog) most() (most ingest.Tracer, spans uint64) {
	earlier := l.ofTracers
	l.ofTracers = map[connected]uint64{}
	for _, tracer := range l.Tracers() {
		id := connected{tracer.PID, tracer.Since}
		l.ofTracers[id] = tracer.Dropped
		if lost := tracer.Dropped - earlier[id]; lost > spans {
			most, spans = tracer, lost
		}
	}
	return most, spans
}
