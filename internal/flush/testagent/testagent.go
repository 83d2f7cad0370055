// Package testagent is an agent for the tests of what sends statistics to one: it answers
// /info, reads payloads as internal/payload does, and misbehaves where a test wants it. The
// stand-in of lab/ is the stricter one, which also counts; tests of the daemon as a whole
// use that.
//
// Requests are served concurrently, and so is OnPayload called. It keeps nothing but a count
// of the payloads, and ends with its test, however busy it is.
package testagent

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/payload"
)

// Info is what /info says.
const Info = `{"endpoints":["/v0.6/stats"],"peer_tags":["db.name","peer.service"],"obfuscation_version":1}`

// Received is one payload that was read.
type Received struct {
	Header  http.Header
	Payload *payload.Payload
	Body    []byte
}

// Agent is a running agent.
type Agent struct {
	server    *httptest.Server
	url       string
	onPayload func(Received)
	fault     atomic.Pointer[func(*http.Request) Fault]
	payloads  atomic.Uint64
	closed    context.Context
}

// Start serves at a port of its own choice, or at a socket, until the test ends.
func Start(t testing.TB, socket string, onPayload func(Received)) *Agent {
	t.Helper()
	a := &Agent{onPayload: onPayload}
	a.SetFault(nil)
	closed, closeAll := context.WithCancel(context.Background())
	a.closed = closed
	a.server = httptest.NewUnstartedServer(http.HandlerFunc(a.serve))
	if socket != "" {
		a.server.Listener.Close()
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		a.server.Listener = listener
	}
	a.server.Start()
	if a.url = a.server.URL; socket != "" {
		a.url = "unix://" + socket
	}
	t.Cleanup(func() {
		closeAll()
		a.server.CloseClientConnections()
		a.server.Close()
	})
	return a
}

// URL is how an exporter names this agent.
func (a *Agent) URL() string { return a.url }

// Payloads is how many were read and accepted, probes left out.
func (a *Agent) Payloads() uint64 { return a.payloads.Load() }

func (a *Agent) serve(w http.ResponseWriter, r *http.Request) {
	fault := (*a.fault.Load())(r)
	if a.misbehave(w, r, fault) {
		return
	}
	if r.URL.Path == "/info" {
		_, _ = io.WriteString(w, Info)
		return
	}
	status := a.take(w.Header(), r)
	if fault.Kind == CloseRead {
		closeNow(w)
		return
	}
	w.WriteHeader(status)
}

// take reads one payload.
func (a *Agent) take(answer http.Header, r *http.Request) (status int) {
	answer.Set("Datadog-Agent-State", state)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return http.StatusBadRequest
	}
	decoded, err := payload.Decode(body)
	if err != nil {
		return http.StatusBadRequest
	}
	if len(decoded.Stats) == 0 {
		return http.StatusOK // a probe
	}
	a.payloads.Add(1)
	if a.onPayload != nil {
		a.onPayload(Received{r.Header.Clone(), decoded, body})
	}
	return http.StatusOK
}
