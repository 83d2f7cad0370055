package post_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/check/endpoint"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
)

// served is a poster to a server of net/http.
func served(t *testing.T, serve http.HandlerFunc) *post.Poster {
	t.Helper()
	s := httptest.NewServer(serve)
	t.Cleanup(s.Close)
	return posterTo(endpoint.URL{Network: "tcp", Address: s.Listener.Addr().String()})
}

func TestConnection_Refused(t *testing.T) {
	for _, e := range []endpoint.URL{
		{Network: "unix", Address: socketIn(t)},
		{Network: "tcp", Address: "127.0.0.1:1"},
	} {
		got := posterTo(e).Post(t.Context(), nil, make([]byte, small))
		if got.Outcome != export.OutcomeNotYet || !got.Silent || got.Err == nil {
			t.Errorf("%s: %+v", e, got)
		}
	}
}

// However the connection ends, a payload is retried only if the destination cannot have received
// all of it.
func TestConnection_EndDecidesRetry(t *testing.T) {
	for name, test := range map[string]struct {
		conduct
		size int
		want export.Outcome
	}{
		"closed before writing":      {conduct{leaves: unread}, small, export.OutcomeNotYet},
		"closed, much to write":      {conduct{leaves: unread}, large, export.OutcomeNotYet},
		"read and closed":            {conduct{asks: true, leaves: read}, small, export.OutcomeUnknown},
		"read completely and closed": {conduct{asks: true, leaves: read}, 1 << 20, export.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, test.conduct, func(t *testing.T, _ *server, p *post.Poster) {
				got := p.Post(t.Context(), nil, make([]byte, test.size))
				if got.Outcome != test.want || !got.Silent {
					t.Errorf("%+v, want export.Outcome %d", got, test.want)
				}
				if strings.Contains(got.Err.Error(), "sent completely") != (test.want == export.OutcomeUnknown) {
					t.Errorf("error %v", got.Err)
				}
			})
		})
	}
}

func TestTimeout_BeforeResponseIsAmbiguous(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := served(t, func(_ http.ResponseWriter, r *http.Request) {
		// The client times out after the body was read completely.
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	})
	if got := p.Post(ctx, nil, make([]byte, small)); got.Outcome != export.OutcomeUnknown {
		t.Errorf("%+v", got)
	}
}

// A partially sent body has not arrived, whether the attempt ends by a timeout or by a reset.
func TestBody_PartIsRetried(t *testing.T) {
	for name, ends := range map[string]func(conn *net.TCPConn, giveUp func()){
		"a time-out": func(_ *net.TCPConn, giveUp func()) { giveUp(); <-t.Context().Done() },
		"a reset":    func(conn *net.TCPConn, _ func()) { _ = conn.SetLinger(0); _ = conn.Close() },
	} {
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
			_, _ = io.ReadFull(conn, make([]byte, 1000))
			ends(conn.(*net.TCPConn), giveUp)
		}()
		p := posterTo(endpoint.URL{Network: "tcp", Address: listener.Addr().String()})
		if got := p.Post(ctx, nil, make([]byte, large)); got.Outcome != export.OutcomeNotYet || !got.Silent {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A server that closes idle connections at any time costs nothing, because no payload is written to
// an idle connection.
func TestConnection_UsedOnce(t *testing.T) {
	var connections, requests atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		requests.Add(1)
	}))
	s.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			connections.Add(1)
		case http.StateIdle:
			_ = conn.Close()
		}
	}
	s.Start()
	defer s.Close()
	p := posterTo(endpoint.URL{Network: "tcp", Address: s.Listener.Addr().String()})
	for range 20 {
		mustPost(t, p, export.OutcomeAccepted)
	}
	if connections.Load() != 20 || requests.Load() != 20 {
		t.Errorf("%d connections, %d requests for 20 payloads", connections.Load(), requests.Load())
	}
}

// A proxy without support for Expect answers so once, and then gets the payload.
func TestExpect_FailedOnce(t *testing.T) {
	var expects, accepted atomic.Int32
	p := served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "" {
			expects.Add(1)
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		if body, err := io.ReadAll(r.Body); err == nil && len(body) == small {
			accepted.Add(1)
		}
	})
	for range 3 {
		mustPost(t, p, export.OutcomeAccepted)
	}
	if expects.Load() != 1 || accepted.Load() != 3 {
		t.Errorf("%d requests with Expect, %d accepted payloads", expects.Load(), accepted.Load())
	}
}

// A proxy that rejects Expect every time is refusing.
func TestExpect_AlwaysFailed(t *testing.T) {
	p := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusExpectationFailed)
	})
	mustPost(t, p, export.OutcomeRefused)
}
