package apm

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// logEvery is how often a line about tracers' requests is written at most: any of
// them could make us write one a request.
const logEvery = 10 * time.Second

// requestLog writes what tracers' requests cause, rarely.
type requestLog struct {
	logger *slog.Logger

	mu     sync.Mutex
	last   map[string]time.Time
	hidden map[string]int
}

func newRequestLog(logger *slog.Logger) *requestLog {
	return &requestLog{logger: logger, last: map[string]time.Time{}, hidden: map[string]int{}}
}

// due says whether a line of that kind may be written, and how many were not.
func (l *requestLog) due(kind string) (hidden int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.last[kind]) < logEvery {
		l.hidden[kind]++
		return 0, false
	}
	hidden = l.hidden[kind]
	l.last[kind], l.hidden[kind] = now, 0
	return hidden, true
}

func (l *requestLog) unread(format traces.Format, err error) {
	if hidden, ok := l.due("unread"); ok {
		l.logger.Warn("traces are left to the agent to count", "error", err, "format", format.String(), "more", hidden)
	}
}

func (l *requestLog) away(err error) {
	if hidden, ok := l.due("away"); ok {
		l.logger.Warn("the agent did not answer a tracer's request", "error", err, "more", hidden)
	}
}

func (l *requestLog) bug(panicked any, stack []byte) {
	if _, ok := l.due("bug"); ok {
		l.logger.Error("counting traces failed; they are left to the agent. Please report this", "panic", fmt.Sprint(panicked), "stack", string(stack))
	}
}
