package ingest

import (
	"log/slog"
	"sync"
	"time"
)

// faultLogSpacing is the least time between two lines about the same reason:
// faults are caused by traffic, and the log must not become a second one.
const faultLogSpacing = 10 * time.Second

// faultLog writes one line a reason and spacing, with the number that it kept
// back.
type faultLog struct {
	logger *slog.Logger
	mu     sync.Mutex
	last   [faults]time.Time
	kept   [faults]int
}

func (l *faultLog) fault(reason Fault, err error, c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.last[reason]) < faultLogSpacing {
		l.kept[reason]++
		return
	}
	l.logger.Warn("connection closed", append(c.attributes(),
		"reason", reason.String(), "error", err, "alike_since_last_line", l.kept[reason])...)
	l.last[reason], l.kept[reason] = now, 0
}
