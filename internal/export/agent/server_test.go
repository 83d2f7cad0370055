package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
)

// infoBody is the /info of an agentServer.
const infoBody = `{"endpoints":["/v0.6/stats"],"peer_tags":["db.name","peer.service"],"obfuscation_version":1}`

// received is one decoded payload.
type received struct {
	header  http.Header
	payload *payload.Payload
	body    []byte
}

// agentServer is an agent that decodes payloads with internal/decode/payload. The one of lab is
// stricter and counts spans; tests of the complete daemon use that one.
type agentServer struct {
	url       string
	onPayload func(received)
	fault     http.HandlerFunc // replaces all other answers; optional
	payloads  atomic.Uint64    // accepted payloads, without probes
}

// startAgent serves on any free port, or on a socket, until the end of the test.
func startAgent(t *testing.T, socket string, onPayload func(received)) *agentServer {
	t.Helper()
	a := &agentServer{onPayload: onPayload}
	server := httptest.NewUnstartedServer(a)
	if socket != "" {
		server.Listener.Close()
		listener, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		server.Listener = listener
	}
	server.Start()
	t.Cleanup(server.Close)
	if a.url = server.URL; socket != "" {
		a.url = "unix://" + socket
	}
	return a
}

func (a *agentServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if a.fault != nil {
		a.fault(w, r)
		return
	}
	if r.URL.Path == "/info" {
		_, _ = io.WriteString(w, infoBody)
		return
	}
	state := sha256.Sum256([]byte(infoBody))
	w.Header().Set("Datadog-Agent-State", hex.EncodeToString(state[:]))
	decoded, unreadable := payload.Decode(body)
	switch {
	case err != nil || unreadable != nil:
		w.WriteHeader(http.StatusBadRequest)
	case len(decoded.Stats) > 0: // otherwise it is a probe
		a.payloads.Add(1)
		if a.onPayload != nil {
			a.onPayload(received{r.Header.Clone(), decoded, body})
		}
	}
}
