package datadog

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
)

// pipes is a listener with in-memory connections, for tests with a fake clock.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// dial returns the tracer's end of a new connection.
func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- ours
	return theirs
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// serveInMemory starts a server with an agent. Without an address the agent is unreachable.
func serveInMemory(t *testing.T, address string, agent *http.Server) (s *Server, tracers *pipes,
	stop func(),
) {
	t.Helper()
	config, agents := DefaultConfig(), newPipes()
	go func() { _ = agent.Serve(agents) }()
	config.Log, config.Agent = slog.New(slog.DiscardHandler), receiver.Upstream{Network: "tcp", Address: address}
	config.Agent.Dial = func(context.Context) (net.Conn, error) { return agents.dial(), nil }
	var err error
	if s, err = New(config); err != nil {
		t.Fatal(err)
	}
	s.policy.Store(policyOf(t))
	tracers = newPipes()
	go func() { _ = s.ServeOn(tracers) }()
	return s, tracers, func() {
		if !s.IsStopping() {
			cut(s)
		}
		agent.Close()
	}
}

// cut closes a server with its requests in flight.
func cut(s *Server) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Drain(over)
}

// TestClient_StallsWithinBody checks that a tracer that stalls within a buffered body gets the agent's own timeout response and
// is disconnected. A tracer that stalls within a streamed body is disconnected after stallTimeout.
func TestClient_StallsWithinBody(t *testing.T) {
	for path, streams := range map[string]bool{
		"/v0.4/traces": false, "/telemetry/proxy/x": true,
		"/v0.6/stats": true,
	} {
		for _, framing := range []string{
			"Content-Length: 100\r\n\r\nhalf",
			"Transfer-Encoding: chunked\r\n\r\n40\r\nhalf",
		} {
			synctest.Test(t, func(t *testing.T) {
				_, tracers, stop := serveInMemory(t, "",
					&http.Server{
						ReadTimeout: readTimeout,
						Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							if _, err := io.ReadAll(r.Body); err != nil {
								http.Error(w, "timeout", http.StatusRequestTimeout)
							}
						}),
					})
				defer stop()
				conn := tracers.dial()
				defer conn.Close()
				if _, err := io.WriteString(conn,
					"PUT "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\n"+framing); err != nil {
					t.Fatal(err)
				}
				_ = conn.SetReadDeadline(time.Now().Add(2 * stallTimeout)) // in fake time
				answer, err := io.ReadAll(conn)
				if err != nil {
					t.Errorf("%s: the connection is still open: %v", path, err)
				}
				if isRefused := strings.HasPrefix(string(answer), "HTTP/1.1 4"); !isRefused && !streams {
					t.Errorf("%s: answered %q", path, answer)
				}
			})
		}
	}
}

// TestClient_Silent checks that a silent tracer is disconnected, even though the agent would wait forever,
// and that a slow tracer is not.
func TestClient_Silent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read int
		_, tracers, stop := serveInMemory(t, "agent",
			&http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				read = len(body)
			})})
		defer stop()
		conn := tracers.dial()
		defer conn.Close()
		_, _ = io.WriteString(conn,
			"PUT /profiling/v1/input HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
		const pieces = 10
		for range pieces {
			time.Sleep(stallTimeout - time.Second)
			if _, err := io.WriteString(conn, "x"); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.SetReadDeadline(time.Now().Add(2 * stallTimeout))
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("the connection is still open: %v", err)
		}
		synctest.Wait()
		if read != pieces {
			t.Errorf("the agent read %d bytes", read)
		}
	})
}

// TestTraces_AgentHangs checks that a trace request without a response of the agent ends after forwardTimeout. This
// includes a tracer that has disconnected after a pipelined request, which net/http does not detect.
func TestTraces_AgentHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, tracers, stop := serveInMemory(t, "agent",
			&http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			})})
		defer stop()
		conn := tracers.dial()
		const request = "PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\n" +
			"Content-Length: 1\r\n\r\n\x90"
		_, _ = io.WriteString(conn, request)
		synctest.Wait()
		go func() {
			_, _ = io.WriteString(conn, request) // fails when the server has closed the connection
		}()
		synctest.Wait()
		conn.Close()
		time.Sleep(forwardTimeout + time.Second)
		synctest.Wait()
		if s := server.Stats(); s.Connections != 0 {
			t.Errorf("%d connections are left", s.Connections)
		}
	})
}

// TestClient_DisconnectIsNoAgentFailure checks that a request of a tracer that disconnects before the response, or
// within the body, does not count as a failure of the agent.
func TestClient_DisconnectIsNoAgentFailure(t *testing.T) {
	for text, want := range map[string]uint64{
		"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\nContent-Length: 1\r\n\r\n\x90": 0,
		"GET /info HTTP/1.1\r\nHost: x\r\n\r\n":                                         0,
		"POST /profiling/v1/input HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf": 0,
		"GET /fails HTTP/1.1\r\nHost: x\r\n\r\n":                                        1,
	} {
		synctest.Test(t, func(t *testing.T) {
			server, tracers, stop := serveInMemory(t, "agent",
				&http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/fails" {
						panic(http.ErrAbortHandler)
					}
					_, _ = io.Copy(io.Discard, r.Body)
					<-r.Context().Done()
				})})
			defer stop()
			conn := tracers.dial()
			_, _ = io.WriteString(conn, text)
			synctest.Wait()
			conn.Close()
			synctest.Wait()
			if s := server.Stats(); s.Failed != want || s.Connections != 0 {
				t.Errorf("%.20q: %d failures of the agent, want %d; %d connections", text, s.Failed, want,
					s.Connections)
			}
		})
	}
}

// TestLongPolls checks that a streamed response can take any time, before and between its parts, with and without a
// request body, and that its connection can be reused.
func TestLongPolls(t *testing.T) {
	for _, request := range []string{
		"GET /x HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /v0.7/config HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"POST /v0.7/config HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody",
	} {
		for _, early := range []time.Duration{0, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				_, tracers, stop := serveInMemory(t, "agent",
					&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body)
						time.Sleep(early)
						for range 3 {
							_, _ = w.Write([]byte("x"))
							_ = http.NewResponseController(w).Flush()
							time.Sleep(time.Hour)
						}
					})})
				defer stop()
				conn := tracers.dial()
				defer conn.Close()
				from := bufio.NewReader(conn)
				for range 2 {
					_, _ = io.WriteString(conn, request)
					resp, err := http.ReadResponse(from, nil)
					if err != nil {
						t.Errorf("%q: %v", request, err)
						return
					}
					if answer, err := io.ReadAll(resp.Body); err != nil || string(answer) != "xxx" {
						t.Errorf("%q: answered %q: %v", request, answer, err)
						return
					}
				}
			})
		}
	}
}
