package standin

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Start listens and serves until Close.
func Start(cfg Config) (*Agent, error) {
	if cfg.Network == "" {
		cfg.Network = "tcp"
	}
	if cfg.Network == "tcp" && cfg.Address == "" {
		cfg.Address = "127.0.0.1:0"
	}
	listener, err := net.Listen(cfg.Network, cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("start stand-in agent: %w", err)
	}
	a := &Agent{cfg: cfg, listener: listener, ledger: &ledger{}}
	a.closed, a.end = context.WithCancel(context.Background())
	a.SetFault(nil)
	a.SetInfo(DefaultInfo())
	mux := http.NewServeMux()
	mux.HandleFunc("/info", a.serveInfo)
	mux.HandleFunc("/v0.6/stats", a.offered(a.serveStats))
	for _, path := range tracePaths {
		mux.HandleFunc(path, a.offered(a.serveTraces))
	}
	a.server = &http.Server{
		Handler: a.faulty(mux), ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout: time.Minute,
	}
	a.serving.Go(func() { _ = a.server.Serve(listener) })
	return a, nil
}

// faulty calls the fault function before every request.
func (a *Agent) faulty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := (*a.fault.Load())(r)
		if a.misbehave(w, r, fault) {
			return
		}
		if fault.Kind == CloseRead {
			next.ServeHTTP(discarded{}, r)
			closeNow(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// discarded is a response that is not sent.
type discarded struct{}

func (discarded) Header() http.Header { return http.Header{} }

func (discarded) Write(p []byte) (int, error) { return len(p), nil }

func (discarded) WriteHeader(int) {}

// misbehave applies a fault before the request is served, and reports whether the request is
// finished.
func (a *Agent) misbehave(w http.ResponseWriter, r *http.Request, fault Fault) bool {
	switch fault.Kind {
	case Answer:
		_, _ = io.Copy(io.Discard, r.Body)
		for name, values := range fault.Header {
			w.Header()[name] = values
		}
		a.ledger.refused()
		http.Error(w, "a fault on purpose", fault.Status)
	case Raw:
		_, _ = io.Copy(io.Discard, r.Body)
		a.ledger.refused()
		writeRaw(w, fault.Raw)
	case Hang, HangUnread:
		if fault.Kind == Hang {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		select {
		case <-r.Context().Done():
		case <-a.closed.Done():
		}
		panic(http.ErrAbortHandler)
	case CloseUnread:
		closeNow(w)
	default:
		return false
	}
	return true
}
