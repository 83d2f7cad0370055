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

// answerJSON responds with a value as JSON, or with status 500 if the value can't be encoded. It
// encodes the complete value before writing, so that a response is never truncated.
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

// LossLog periodically logs dropped spans, collapsed labels, and masked names. Each line contains
// the counts since the previous line. LossLog logs nothing if there are none.
type LossLog struct {
	Dropped       func() map[string]uint64           // spans so far, by reason; a new map for each call
	Tracers       func() []ingest.Tracer             // connected tracers
	Collapsed     func() map[string]uint64           // spans so far, by field
	MostCollapsed func() (label string, keys uint64) // label with the most collapsed keys since the last call
	Masked        func() map[string]uint64           // masked keys so far, by field
	Log           *slog.Logger

	loggedDrops     map[string]uint64       // Dropped at the last line
	loggedCollapses map[string]uint64       // Collapsed at the last line
	loggedMasks     map[string]uint64       // Masked at the last line
	droppedByConn   map[connectionID]uint64 // dropped spans at the last line, by connection
	nextDropTick    int                     // first tick at which dropped spans can be logged again
}

// connectionID identifies a connection.
type connectionID struct {
	pid   int32
	since time.Time
}

const (
	tickInterval      = 5 * time.Second // interval of checks for new losses
	ticksPerDropLine  = 12              // minimum number of ticks between two lines about drops
	ticksPerLabelLine = 60              // number of ticks between two lines about collapsed labels and masks
	leftToAgent       = "left_to_agent" // not a loss: the agent counts these spans
	ignored           = "ignored"       // not a loss: configured to be ignored
	spansGroup        = "spans_since_last_line"
)

// Run logs dropped spans, masked names and collapsed labels periodically until stop is closed. Before it
// returns, it logs those that it has not logged yet.
func (l *LossLog) Run(stop <-chan struct{}) {
	l.loggedDrops = l.Dropped()
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	for tick := 1; ; tick++ {
		select {
		case <-ticker.C:
			l.logDue(tick)
		case <-stop:
			l.logDrops()
			l.logMaskedNames()
			l.logCollapsedLabels()
			return
		}
	}
}

// logDue is called at every tick. It logs dropped spans, unless the last line about them is less than
// ticksPerDropLine ticks old. It logs masked names and collapsed labels every ticksPerLabelLine ticks.
func (l *LossLog) logDue(tick int) {
	if tick >= l.nextDropTick {
		hasLogged := l.logDrops()
		if hasLogged {
			l.nextDropTick = tick + ticksPerDropLine
		}
	}
	if tick%ticksPerLabelLine == 0 {
		l.logMaskedNames()
		l.logCollapsedLabels()
	}
}

// logDrops logs the number of spans that were dropped since the last line, for each reason. It also logs
// the client with the most of them. It omits the reasons left_to_agent and ignored, because such spans
// are not lost. It logs nothing, and returns false, if no span was lost.
func (l *LossLog) logDrops() (hasLogged bool) {
	dropped := l.Dropped()
	delete(dropped, leftToAgent)
	delete(dropped, ignored)
	attrs := increases(l.loggedDrops, dropped)
	l.loggedDrops = dropped
	if len(attrs) == 0 {
		return false
	}
	args := []any{slog.Group(spansGroup, attrs...)}
	client, spans := l.mostDropped()
	if spans > 0 {
		args = append(args, "mostly", clientAttrs(&client), "mostly_spans", spans)
	}
	l.Log.Warn("spans were dropped; docs/metrics.md has the fix for each reason, see "+
		"spanstatsd_spans_dropped_total", args...)
	return true
}

// clientAttrs returns the attributes that identify a client in the log.
func clientAttrs(client *ingest.Tracer) slog.Value {
	return slog.GroupValue(slog.String("service", client.Service), slog.String("client", client.Client),
		slog.Int("pid", int(client.PID)), slog.String("container", client.Container))
}

// mostDropped returns the connected client with the most spans that were dropped since the last call,
// and the number of these spans. The number is 0 if no span of a connected client was dropped.
func (l *LossLog) mostDropped() (client ingest.Tracer, spans uint64) {
	droppedByConn := map[connectionID]uint64{}
	for _, candidate := range l.Tracers() {
		id := connectionID{pid: candidate.PID, since: candidate.Since}
		droppedByConn[id] = candidate.Dropped
		increase := candidate.Dropped - l.droppedByConn[id]
		if increase > spans {
			client, spans = candidate, increase
		}
	}
	l.droppedByConn = droppedByConn // for the next call
	return client, spans
}

// logMaskedNames logs the number of label sets in which a mask has replaced a name since the last line.
func (l *LossLog) logMaskedNames() {
	masked := l.Masked()
	attrs := increases(l.loggedMasks, masked)
	l.loggedMasks = masked
	if len(attrs) == 0 {
		return
	}
	l.Log.Info("names with identifiers were replaced by masks such as /users/{id}, to stay within label budgets; "+
		"--mask-names=never disables masks",
		slog.Group("keys_since_last_line", attrs...))
}

// logCollapsedLabels logs labels that had too many values. For each of them, it logs how many spans were counted
// without their value since the last line. It also logs the label with the most collapsed keys.
func (l *LossLog) logCollapsedLabels() {
	mostCollapsed, collapsedKeys := l.MostCollapsed()
	collapsed := l.Collapsed()
	attrs := increases(l.loggedCollapses, collapsed)
	l.loggedCollapses = collapsed
	if len(attrs) == 0 {
		return
	}
	args := []any{slog.Group(spansGroup, attrs...)}
	if collapsedKeys > 0 {
		args = append(args, "mostly", mostCollapsed, "mostly_keys", collapsedKeys)
	}
	l.Log.Warn("labels with too many distinct values were collapsed; reduce the values, or raise "+
		"--cardinality-limit (--max-origins for origin, --max-aggregates and --max-key-bytes-total for "+
		"whole_key)", args...)
}

// increases returns the differences of counters to their previous values as log attributes, sorted by
// name. It omits counters that have not changed.
func increases(previous, current map[string]uint64) (attrs []any) {
	for _, name := range slices.Sorted(maps.Keys(current)) {
		increase := current[name] - previous[name]
		if increase > 0 {
			attrs = append(attrs, name, increase)
		}
	}
	return attrs
}
