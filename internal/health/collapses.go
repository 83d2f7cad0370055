package health

import (
	"log/slog"
	"maps"
	"slices"
	"time"
)

// CollapseLog says in one line now and then what labels have collapsed, and which
// of them did most of it; and in another, what was counted with masks instead. It says
// nothing while there is nothing of either.
type CollapseLog struct {
	Spans         func() map[string]uint64           // collapsed so far, by field
	MostCollapsed func() (label string, keys uint64) // since it was last asked
	Masked        func() map[string]uint64           // keys with masks so far, by field
	Log           *slog.Logger

	last, lastMasked map[string]uint64
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
	l.masks()
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

// masks says where identifiers have put names over their budgets.
func (l *CollapseLog) masks() {
	now := l.Masked()
	fields := since(l.lastMasked, now)
	l.lastMasked = now
	if len(fields) > 0 {
		l.Log.Info("values with identifiers are counted under masks, such as /users/{id}; "+
			"--mask-names=never has those that are over their budget collapse instead",
			slog.Group("keys_since_last_line", fields...))
	}
}

// since is what has grown, by name and how much, for a group of the log.
func since(last, now map[string]uint64) (fields []any) {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if spans := now[name] - last[name]; spans > 0 {
			fields = append(fields, name, spans)
		}
	}
	return fields
}
