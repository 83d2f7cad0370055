package apm

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// logEvery is how often a line about tracers' requests is written at most: any of
// them could make us write one a request.
const logEvery = 10 * time.Second

// requestLog writes what tracers' requests cause, each line rarely.
type requestLog struct {
	logger *slog.Logger

	mu     sync.Mutex
	last   map[string]time.Time // by message
	hidden map[string]int
}

func newRequestLog(logger *slog.Logger) *requestLog {
	return &requestLog{logger: logger, last: map[string]time.Time{}, hidden: map[string]int{}}
}

// write writes a line, and how many of the same message were not written before it.
func (l *requestLog) write(level slog.Level, message string, fields ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last[message]) < logEvery {
		l.hidden[message]++
		return
	}
	l.logger.Log(context.Background(), level, message, append(fields, "more", l.hidden[message])...)
	l.last[message], l.hidden[message] = time.Now(), 0
}

// bug writes that counting has panicked.
func (l *requestLog) bug(panicked any) {
	l.write(slog.LevelError, "counting traces failed; they are left to the agent. Please report this",
		"panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
}
