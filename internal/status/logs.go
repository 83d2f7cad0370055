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

// failureInterval is the least time between two lines about requests that failed: programs ask every few
// seconds.
const failureInterval = time.Minute

// failureLog logs why a request could not be answered.
type failureLog struct{ logger *slog.Logger }

func newFailureLog(log *slog.Logger) failureLog {
	return failureLog{ratelog.New(log, failureInterval, "")}
}

// Println logs an error of promhttp. It is no failure if the client has left.
func (l *failureLog) Println(said ...any) {
	if !slices.ContainsFunc(said, isLeft) {
		l.logger.Error("a request to the http address was not answered", "error", fmt.Sprint(said...))
	}
}

// isLeft says whether it is an error of writing to who asked.
func isLeft(said any) bool {
	err, _ := said.(error)
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "write"
}

// answerJSON answers with a value whole, or with why it can't be written: what is short of
// its end, or empty, would be taken for all there is.
func (l *failureLog) answerJSON(w http.ResponseWriter, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		err = fmt.Errorf("encode status: %w; it is a defect: please report it", err)
		l.Println(err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(append(sanitize.JSON(text), '\n')) // an error means that who asked has left
}

// LossLog says in a line now and then what was lost since the line before: spans that were
// dropped, labels that have collapsed, values that are counted under masks. It says nothing
// where there is nothing new, and last what the end of a daemon leaves unsaid.
type LossLog struct {
	Dropped       func() map[string]uint64           // spans so far, by reason; a new map each time
	Tracers       func() []ingest.Tracer             // those that are connected
	Collapsed     func() map[string]uint64           // spans so far, by field
	MostCollapsed func() (label string, keys uint64) // since it was last asked
	Masked        func() map[string]uint64           // keys with masks so far, by field
	Log           *slog.Logger

	dropped, collapsed, masked map[string]uint64 // as the last lines had them
	ofTracers                  map[connected]uint64
	quiet                      int // looks since the last line about drops
}

// connected tells connections apart.
type connected struct {
	pid   int32
	since time.Time
}

// A line about drops comes soon after the first one, and at most one a minute; of names
// there is one every five minutes. Both go on for as long as their cause does, and the
// counters say the rest.
const (
	lossLook     = 5 * time.Second
	looksOfDrops = 12
	looksOfNames = 60
	leftToAgent  = "left_to_agent" // a reason that loses nothing: the agent counts those spans
	ignored      = "ignored"       // another: nobody wants them counted
	spansGroup   = "spans_since_last_line"
)

// Run writes until stop is closed, and then what has not been said yet.
func (l *LossLog) Run(stop <-chan struct{}) {
	l.dropped, l.quiet = l.Dropped(), looksOfDrops
	ticker := time.NewTicker(lossLook)
	defer ticker.Stop()
	for look := 1; ; look++ {
		select {
		case <-ticker.C:
			if l.quiet++; l.quiet >= looksOfDrops {
				l.drops()
			}
			if look%looksOfNames == 0 {
				l.names()
			}
		case <-stop:
			l.drops()
			l.names()
			return
		}
	}
}

// drops says how many spans were dropped, why, and which tracer lost most of them.
func (l *LossLog) drops() {
	now := l.Dropped()
	delete(now, leftToAgent)
	delete(now, ignored)
	fields := grown(&l.dropped, now)
	if len(fields) == 0 {
		return
	}
	l.quiet = 0
	args := []any{slog.Group(spansGroup, fields...)}
	if most, spans := l.mostDropped(); spans > 0 {
		args = append(args, "mostly", slog.GroupValue(slog.String("service", most.Service),
			slog.String("client", most.Client), slog.Int("pid", int(most.PID)),
			slog.String("container", most.Container)), "mostly_spans", spans)
	}
	l.Log.Warn("spans were dropped; docs/metrics.md says of each reason what to do, at "+
		"spanstatsd_spans_dropped_total", args...)
}

// mostDropped is the connected tracer that lost most since the last line, and how many.
func (l *LossLog) mostDropped() (most ingest.Tracer, spans uint64) {
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

// names says which labels have collapsed, and which of them did most of it; and where
// identifiers have put names over their budgets.
func (l *LossLog) names() {
	if fields := grown(&l.masked, l.Masked()); len(fields) > 0 {
		l.Log.Info("values with identifiers are counted under masks, such as /users/{id}; "+
			"--mask-names=never has those that are over their budget collapse instead",
			slog.Group("keys_since_last_line", fields...))
	}
	label, keys := l.MostCollapsed()
	fields := grown(&l.collapsed, l.Collapsed())
	if len(fields) == 0 {
		return
	}
	args := []any{slog.Group(spansGroup, fields...)}
	if keys > 0 {
		args = append(args, "mostly", label, "mostly_keys", keys)
	}
	l.Log.Warn("labels with too many distinct values were collapsed; mend what puts them there, or raise "+
		"--cardinality-limit, --max-origins for origin, --max-aggregates and --max-key-bytes-in-all for "+
		"whole_key", args...)
}

// grown is what has grown since the last line, by name and how much, for a group of the log.
func grown(last *map[string]uint64, now map[string]uint64) (fields []any) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if more := now[name] - (*last)[name]; more > 0 {
			fields = append(fields, name, more)
		}
	}
	*last = now
	return fields
}
