// Package ratelog implements a slog.Handler that writes at most one record of a kind per interval, so that
// a message caused by traffic does not turn the log into more traffic.
//
// Two records are of one kind if they have the same message and, where the handler names an attribute, the
// same value of it. The next record of a kind that is written has an attribute "suppressed" with the number
// of records that were left out before it.
//
// Concurrency: a Handler can be used by any goroutine, as slog requires.
//
// Limits: one entry per kind. Messages, and the values of the named attribute, must come from a fixed set.
package ratelog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Handler limits the records that reach another handler.
type Handler struct {
	next  slog.Handler
	every time.Duration
	key   string // attribute that tells records with the same message apart; "" for none
	kinds *kinds // shared by all handlers derived from this one
}

type kinds struct {
	mu     sync.Mutex
	byName map[kind]*entry
}

type kind struct{ message, value string }

type entry struct {
	written    time.Time
	suppressed int
}

// New returns a logger that writes to another one, at most one record of a kind per interval. Records with
// the same message are of one kind unless they differ in the value of the attribute key; "" names none.
func New(log *slog.Logger, every time.Duration, key string) *slog.Logger {
	return slog.New(&Handler{
		next: log.Handler(), every: every, key: key, kinds: &kinds{byName: map[kind]*entry{}},
	})
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	of := kind{message: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == h.key {
			of.value = a.Value.String()
		}
		return true
	})
	suppressed, isDue := h.kinds.pass(of, r.Time, h.every)
	if !isDue {
		return nil
	}
	if suppressed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("suppressed", suppressed))
	}
	return h.next.Handle(ctx, r) //nolint:wrapcheck // it is that handler's own error
}

// pass reports whether a record may be written at a time, and how many were suppressed before it.
func (k *kinds) pass(of kind, at time.Time, every time.Duration) (suppressed int, isDue bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, isKnown := k.byName[of]
	if !isKnown {
		e = &entry{}
		k.byName[of] = e
	} else if at.Sub(e.written) < every {
		e.suppressed++
		return 0, false
	}
	suppressed = e.suppressed
	e.written, e.suppressed = at, 0
	return suppressed, true
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	derived.next = h.next.WithAttrs(attrs)
	return &derived
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	derived := *h
	derived.next = h.next.WithGroup(name)
	return &derived
}
