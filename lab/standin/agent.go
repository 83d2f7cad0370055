package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
)

// Config sets where the agent listens. The zero Config is any free port of the loopback
// interface.
type Config struct {
	Network   string         // "tcp" (default) or "unix"
	Address   string         // host:port, by default 127.0.0.1:0, or the path of a socket
	Weighted  bool           // spans can have weights, so sketch counts can differ from hits
	OnPayload func(Received) // called for each accepted payload, concurrently
	OnTraces  func(Traces)   // called for each request with traces, concurrently
}

// Received is one accepted payload.
type Received struct {
	Header  http.Header
	Payload *payload.Payload
	Body    []byte
}

// Traces is one accepted request with traces. IsCounted reports whether its spans are marked as
// counted; otherwise the agent would count them.
type Traces struct {
	Header    http.Header
	IsCounted bool
}

// Agent is a running mock agent.
type Agent struct {
	cfg      Config
	listener net.Listener
	server   *http.Server
	ledger   *ledger
	info     atomic.Pointer[Info]
	fault    atomic.Pointer[func(*http.Request) Fault]
	closed   context.Context
	end      context.CancelFunc
	serving  sync.WaitGroup
}

// URL returns the URL that a client uses for this agent.
func (a *Agent) URL() string {
	if a.cfg.Network == "unix" {
		return "unix://" + a.cfg.Address
	}
	return "http://" + a.listener.Addr().String()
}

// Totals returns the totals accepted so far.
func (a *Agent) Totals() Totals { return a.ledger.look() }

// SetInfo changes the content of /info, and the state header with it. If its endpoints lack
// /v0.6/stats, payloads are rejected with 404.
func (a *Agent) SetInfo(i Info) { a.info.Store(&i) }

// Close stops the agent and closes its connections, even if they are busy.
func (a *Agent) Close() error {
	a.end()
	err := a.server.Close()
	a.serving.Wait()
	if err != nil {
		return fmt.Errorf("close stand-in agent: %w", err)
	}
	return nil
}

func (a *Agent) serveInfo(w http.ResponseWriter, _ *http.Request) {
	body, _ := a.info.Load().render()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(body)
}

func (a *Agent) refuse(w http.ResponseWriter, status int, why string) {
	a.ledger.refused()
	http.Error(w, why, status)
}

// offered serves an endpoint only while /info lists it.
func (a *Agent) offered(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		now := a.info.Load()
		now.setHeaders(w.Header())
		if !slices.Contains(now.Endpoints, r.URL.Path) {
			a.refuse(w, http.StatusNotFound, "404 page not found")
			return
		}
		serve(w, r)
	}
}

// serveStats accepts one payload.
func (a *Agent) serveStats(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequestBytes+1))
	if err != nil {
		a.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if len(body) > maxRequestBytes {
		a.refuse(w, http.StatusBadRequest, fmt.Sprintf("read limit reached at %d", maxRequestBytes))
		return
	}
	decoded, err := payload.Decode(body)
	switch {
	case errors.Is(err, payload.ErrNilElement):
		a.ledger.problem("%v", err)
		a.ledger.refused()
		panic(http.ErrAbortHandler)
	case err != nil:
		a.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	a.ledger.accept(decoded, len(body), a.cfg.Weighted)
	if a.cfg.OnPayload != nil {
		a.cfg.OnPayload(Received{Header: r.Header.Clone(), Payload: decoded, Body: body})
	}
}

// SetFault sets a function that is called for every further request, /info included. nil ends
// all faults.
func (a *Agent) SetFault(f func(*http.Request) Fault) {
	if f == nil {
		f = func(*http.Request) Fault { return Fault{} }
	}
	a.fault.Store(&f)
}
