package door

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

// RequestLog writes what tracers' requests cause, each line rarely.
type RequestLog struct {
	logger *slog.Logger

	mu     sync.Mutex
	last   map[string]time.Time // by message
	hidden map[string]int
}

func NewRequestLog(logger *slog.Logger) *RequestLog {
	return &RequestLog{logger: logger, last: map[string]time.Time{}, hidden: map[string]int{}}
}

// Write writes a line, and how many of the same message were not written before it.
func (l *RequestLog) Write(level slog.Level, message string, fields ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last[message]) < logEvery {
		l.hidden[message]++
		return
	}
	l.logger.Log(context.Background(), level, message, append(fields, "more", l.hidden[message])...)
	l.last[message], l.hidden[message] = time.Now(), 0
}

// Bug writes that counting has panicked.
func (l *RequestLog) Bug(panicked any) {
	l.Write(slog.LevelError, "counting traces failed; they go on uncounted. Please report this",
		"panic", fmt.Sprint(panicked), "stack", string(debug.Stack()))
}
