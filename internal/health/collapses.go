package health

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/shown"
)

// CollapseLog says in one line now and then what labels have collapsed, and which
// of them did most of it; and in another, which templates were learnt instead. It says
// nothing while none do.
type CollapseLog struct {
	Spans         func() map[string]uint64             // collapsed so far, by field
	MostCollapsed func() (label string, keys uint64)   // since it was last asked
	NewTemplates  func() (names []string, more uint64) // that explain values now; since it was last asked
	Log           *slog.Logger

	last map[string]uint64
}

// collapseLogEvery is the time between two lines: collapses go on for as long as
// their cause does, and the counters say the rest.
const collapseLogEvery = 5 * time.Minute

// Run writes until stop is closed, and then what has not been said yet.
func (l *CollapseLog) Run(stop <-chan struct{}) {
	ticker := time.NewTicker(collapseLogEvery)
	defer ticker.Stop()
	for running := true; running; l.line() {
		select {
		case <-ticker.C:
		case <-stop:
			running = false
		}
	}
}

func (l *CollapseLog) line() {
	l.templates()
	now := l.Spans()
	label, keys := l.MostCollapsed()
	fields := since(l.last, now)
	l.last = now
	if len(fields) == 0 {
		return
	}
	args := []any{slog.Group("spans_since_last_line", fields...)}
	if keys > 0 {
		args = append(args, "mostly", label, "mostly_keys", keys)
	}
	l.Log.Warn("labels with too many distinct values were collapsed; mend what puts them there, or raise "+
		"--cardinality-limit, --max-origins for origin, --max-aggregates and --max-key-bytes-in-all for "+
		"whole_key", args...)
}

// templates says which were learnt.
func (l *CollapseLog) templates() {
	names, more := l.NewTemplates()
	if len(names) == 0 {
		return
	}
	for i, name := range names {
		names[i] = shown.Text(name[:min(len(name), mostShownName)])
	}
	l.Log.Info("values with no room for names of their own are counted under templates; --fold-names=false "+
		"has them collapse", "templates", names, "and_more", more)
}

const mostShownName = 200 // bytes

// since is what has grown, by name and how much, for a group of the log.
func since(last, now map[string]uint64) (fields []any) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if spans := now[name] - last[name]; spans > 0 {
			fields = append(fields, name, spans)
		}
	}
	return fields
}
