package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/logging/ratelog"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// failureInterval is the minimum time between two log lines about failed requests, because programs
// poll every few seconds.
const failureInterval = time.Minute

// failureLog logs failures to answer HTTP requests.
type failureLog struct{ logger *slog.Logger }

func newFailureLog(log *slog.Logger) failureLog {
	return failureLog{ratelog.New(log, failureInterval, "")}
}

// Println logs an error of promhttp, unless the client has disconnected.
func (l *failureLog) Println(values ...any) {
	if !slices.ContainsFunc(values, isWriteError) {
		l.logger.Error("can't answer a request to --http-addr", "error", fmt.Sprint(values...))
	}
}

// isWriteError reports whether a value is an error of writing to the client.
func isWriteError(value any) bool {
	err, _ := value.(error)
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "write"
}

// answerJSON responds with a value as JSON, or with an error if it can't be encoded. It encodes the
// whole value first, because a truncated response could be mistaken for a complete one.
func (l *failureLog) answerJSON(w http.ResponseWriter, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		err = fmt.Errorf("encode status: %w; this is a bug: please report it", err)
		l.Println(err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(append(sanitize.JSON(text), '\n')) // an error means that the client has disconnected
}

// LossLog periodically logs losses since the previous line: dropped spans, collapsed labels, and
// masked values. It logs nothing if there are none. When it ends it logs the rest.
type LossLog struct {
	Dropped       func() map[string]uint64           // spans so far, by reason; a new map for each call
	Tracers       func() []ingest.Tracer             // connected tracers
	Collapsed     func() map[string]uint64           // spans so far, by field
	MostCollapsed func() (label string, keys uint64) // label with the most collapsed keys since the last call
	Masked        func() map[string]uint64           // masked keys so far, by field
	Log           *slog.Logger

	dropped, collapsed, masked map[string]uint64       // counts at the last line
	droppedByConn              map[connectionID]uint64 // dropped spans at the last line, by connection
	ticksSinceDrops            int                     // checks since the last line about drops
}

// connectionID identifies a connection.
type connectionID struct {
	pid   int32
	since time.Time
}

const (
	lossInterval     = 5 * time.Second // interval of checks (ticks)
	ticksPerDropLine = 12              // minimum number of ticks between two lines about drops
	ticksPerNameLine = 60              // number of ticks between two lines about collapsed labels and masks
	leftToAgent      = "left_to_agent" // not a loss: the agent counts these spans
	ignored          = "ignored"       // not a loss: configured to be ignored
	spansGroup       = "spans_since_last_line"
)

// Run logs losses until stop is closed, and then those that have not been logged.
func (l *LossLog) Run(stop <-chan struct{}) {
	l.dropped, l.ticksSinceDrops = l.Dropped(), ticksPerDropLine
	ticker := time.NewTicker(lossInterval)
	defer ticker.Stop()
	for tick := 1; ; tick++ {
		select {
		case <-ticker.C:
			if l.ticksSinceDrops++; l.ticksSinceDrops >= ticksPerDropLine {
				l.logDrops()
			}
			if tick%ticksPerNameLine == 0 {
				l.logNames()
			}
		case <-stop:
			l.logDrops()
			l.logNames()
			return
		}
	}
}

// logDrops logs how many spans were dropped, by reason, and which tracer lost most of them.
func (l *LossLog) logDrops() {
	now := l.Dropped()
	delete(now, leftToAgent)
	delete(now, ignored)
	fields := increases(&l.dropped, now)
	if len(fields) == 0 {
		return
	}
	l.ticksSinceDrops = 0
	args := []any{slog.Group(spansGroup, fields...)}
	if most, spans := l.mostDropped(); spans > 0 {
		args = append(args, "mostly", slog.GroupValue(slog.String("service", most.Service),
			slog.String("client", most.Client), slog.Int("pid", int(most.PID)),
			slog.String("container", most.Container)), "mostly_spans", spans)
	}
	l.Log.Warn("spans were dropped; docs/metrics.md has the fix for each reason, see "+
		"spanstatsd_spans_dropped_total", args...)
}

// mostDropped returns the connected tracer that lost the most spans since the last line, and their
// number.
func (l *LossLog) mostDropped() (most ingest.Tracer, spans uint64) {
	earlier := l.droppedByConn
	l.droppedByConn = map[connectionID]uint64{}
	for _, tracer := range l.Tracers() {
		id := connectionID{tracer.PID, tracer.Since}
		l.droppedByConn[id] = tracer.Dropped
		if lost := tracer.Dropped - earlier[id]; lost > spans {
			most, spans = tracer, lost
		}
	}
	return most, spans
}

// logNames logs the number of masked keys, the number of spans with collapsed labels, and the label that collapsed most
// often.
func (l *LossLog) logNames() {
	if fields := increases(&l.masked, l.Masked()); len(fields) > 0 {
		l.Log.Info("names with identifiers were replaced by masks such as /users/{id}, to stay within label budgets; "+
			"--mask-names=never disables masks",
			slog.Group("keys_since_last_line", fields...))
	}
	label, keys := l.MostCollapsed()
	fields := increases(&l.collapsed, l.Collapsed())
	if len(fields) == 0 {
		return
	}
	args := []any{slog.Group(spansGroup, fields...)}
	if keys > 0 {
		args = append(args, "mostly", label, "mostly_keys", keys)
	}
	l.Log.Warn("labels with too many distinct values were collapsed; reduce the values, or raise "+
		"--cardinality-limit (--max-origins for origin, --max-aggregates and --max-key-bytes-total for "+
		"whole_key)", args...)
}

// increases returns the increase of each counter since the last line as log attributes. It omits counters without an
// increase, and sets *last to now.
func increases(last *map[string]uint64, now map[string]uint64) (fields []any) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if increase := now[name] - (*last)[name]; increase > 0 {
			fields = append(fields, name, increase)
		}
	}
	*last = now
	return fields
}
