// Package ratelog implements a slog.Handler that writes at most one record of each kind per interval, so
// that messages about requests do not flood the log.
//
// Two records are of the same kind if they have the same message and, if the handler has a key, the same
// value of the attribute with this key. After records of a kind were suppressed, the next one that is
// written has an attribute "suppressed" with their number.
//
// Concurrency: a Handler is safe for concurrent use, as slog requires.
//
// Limits: the handler remembers every kind, so messages and values of the key attribute must come from a
// fixed set.
package ratelog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Handler suppresses records of the same kind that would reach another handler within an interval.
type Handler struct {
	next     slog.Handler
	interval time.Duration
	key      string // attribute that distinguishes records with the same message; "" for none
	kinds    *kinds // shared by all handlers that WithAttrs and WithGroup derive from this one
}

type kinds struct {
	mu     sync.Mutex
	byKind map[kind]*entry
}

type kind struct{ message, value string }

type entry struct {
	written    time.Time // time of the last record that was written
	suppressed int       // number of records since then
}

// New returns a logger that writes records to log, but at most one record of each kind per interval. Records are of the
// same kind if they have the same message and the same value of the attribute key. If key is "", only the message counts.
func New(log *slog.Logger, interval time.Duration, key string) *slog.Logger {
	return slog.New(&Handler{
		next: log.Handler(), interval: interval, key: key, kinds: &kinds{byKind: map[kind]*entry{}},
	})
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	suppressed, mayWrite := h.kinds.allow(h.kindOf(r), r.Time, h.interval)
	if !mayWrite {
		return nil
	}
	if suppressed > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("suppressed", suppressed))
	}
	return h.next.Handle(ctx, r) //nolint:wrapcheck // the error is that handler's
}

// kindOf returns the kind of a record.
func (h *Handler) kindOf(r slog.Record) kind {
	k := kind{message: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == h.key {
			k.value = a.Value.String()
		}
		return true
	})
	return k
}

// allow reports whether a record of the kind k may be written now. It returns false if the last one was
// written less than interval ago. If it returns true, suppressed is the number of records refused since the
// last one.
func (ks *kinds) allow(k kind, now time.Time, interval time.Duration) (suppressed int, mayWrite bool) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	last, isKnown := ks.byKind[k]
	if !isKnown {
		ks.byKind[k] = &entry{written: now}
		return 0, true
	}
	if now.Sub(last.written) < interval {
		last.suppressed++
		return 0, false
	}
	suppressed = last.suppressed
	last.written = now
	last.suppressed = 0
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
