package datadog

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// echo is an agent that responds with the request that it got, after a delay.
func echo(delay func() time.Duration) *http.Server {
	return &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		time.Sleep(delay())
		fmt.Fprintf(w, "%s %s %d", r.Method, r.URL.Path, len(body))
	})}
}

func atOnce() time.Duration { return 0 }

// sent is a request as text, and the expected response of echo.
type sent struct{ text, answer string }

func requestOf(method, path, fields string, body int) sent {
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/msgpack\r\n%s", method, path,
		fields)
	switch content := strings.Repeat("\x90", body); {
	case strings.Contains(fields, "chunked"):
		text += fmt.Sprintf("\r\n%x\r\n%s\r\n0\r\n\r\n", body, content)
	case method == "GET":
		text += "\r\n"
	default:
		text += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", body, content)
	}
	return sent{text, fmt.Sprintf("%s %s %d", method, path, body)}
}

// TestRequest_BodyIsNoRequest sends the header of a second request together with the end of a chunked first one. The body
// of the second request, which looks like a request, is not another one.
func TestRequest_BodyIsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tracers, stop := serveInMemory(t, "agent", echo(atOnce))
		defer stop()
		conn := tracers.dial()
		defer conn.Close()
		from := bufio.NewReader(conn)
		inside := requestOf("PUT", "/v0.4/traces", "", 1).text
		chunked := requestOf("POST", "/telemetry/x", "Transfer-Encoding: chunked\r\n", 9)
		head := fmt.Sprintf("POST /telemetry/y HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
			len(inside))
		_, _ = io.WriteString(conn, chunked.text+head)
		if got := answerOf(t, from); got != chunked.answer {
			t.Fatalf("the first request was answered %q, want %q", got, chunked.answer)
		}
		synctest.Wait()
		_, _ = io.WriteString(conn, inside)
		if got, want := answerOf(t, from), fmt.Sprintf("POST /telemetry/y %d", len(inside)); got != want {
			t.Errorf("the second request was answered %q, want %q", got, want)
		}
	})
}

// TestResponse_InTwoParts has an agent that writes its response in two parts.
func TestResponse_InTwoParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inPieces := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "8")
			_, _ = io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			time.Sleep(time.Millisecond)
			_, _ = io.WriteString(w, "half")
		})}
		_, tracers, stop := serveInMemory(t, "agent", inPieces)
		defer stop()
		conn := tracers.dial()
		defer conn.Close()
		from := bufio.NewReader(conn)
		for i := range 3 { // later requests reuse the connection to the agent
			_, _ = io.WriteString(conn, requestOf("PUT", "/v0.4/traces", "", 1).text)
			if got := answerOf(t, from); got != "halfhalf" {
				t.Fatalf("request %d was answered %q", i, got)
			}
		}
	})
}

// answerOf reads a successful response and returns its body.
func answerOf(t *testing.T, from *bufio.Reader) string {
	t.Helper()
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Sprint(resp.StatusCode, " ", err)
	}
	return string(text)
}

// TestPipelining_EachRequestIsAnswered checks that the responses to requests of all kinds have the order of the
// requests: with any split into writes, with and without pipelining, with a fast and with a slow agent. No memory
// is kept afterwards.
func TestPipelining_EachRequestIsAnswered(t *testing.T) {
	kinds := []sent{
		requestOf("PUT", "/v0.4/traces", "", 1), requestOf("POST", "/v0.5/traces", "", 6000),
		requestOf("PUT", "/v1.0/traces", "Connection: Keep-Alive\r\n", 0),
		requestOf("GET", "/info", "", 0), requestOf("POST", "/telemetry/x", "", 5000),
		requestOf("PUT", "/v0.4/traces", "Transfer-Encoding: chunked\r\n", 300),
		requestOf("POST", "/v0.7/config", "", 0),
		requestOf("PUT", "/v0.3/traces", "Expect: 100-continue\r\n", 7),
	}
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(10, seed))
			delay := func() time.Duration { return 0 }
			if seed%3 == 1 {
				delay = func() time.Duration { return time.Duration(rand.IntN(3)) * 20 * time.Millisecond }
			}
			s, tracers, stop := serveInMemory(t, "agent", echo(delay))
			defer stop()
			conn := tracers.dial()
			from, answered := bufio.NewReader(conn), make(chan struct{}, 1)
			known := kinds[:3+rnd.IntN(len(kinds)-3)]
			var all []sent
			for range 20 {
				all = append(all, known[rnd.IntN(len(known))])
			}
			waits, cuts := rnd.IntN(2) == 0, rnd.IntN(2) == 0
			go func() {
				for _, request := range all {
					for rest := request.text; rest != ""; {
						n := len(rest)
						if cuts {
							n = 1 + rnd.IntN(n)
						}
						_, _ = io.WriteString(conn, rest[:n])
						rest = rest[n:]
					}
					if waits {
						<-answered
					}
				}
			}()
			for i, request := range all {
				if strings.Contains(request.text, "Expect") {
					expectContinue(from)
				}
				if got := answerOf(t, from); got != request.answer {
					t.Fatalf("round %d: request %d was answered %q, want %q", seed, i, got, request.answer)
				}
				if waits {
					answered <- struct{}{}
				}
			}
			conn.Close()
			synctest.Wait()
			if open := s.Stats().Connections; open != 0 || s.Stats().BufferedBytes != 0 {
				t.Errorf("round %d: %d connections and %d bytes of bodies are left", seed, open,
					s.Stats().BufferedBytes)
			}
		})
	}
}

// expectContinue reads the interim response.
func expectContinue(from *bufio.Reader) {
	if line, _ := from.Peek(12); string(line) == "HTTP/1.1 100" {
		_, _ = http.ReadResponse(from, nil)
	}
}

// TestStop_EndsConnections checks that an idle connection ends immediately, and one with a request in
// flight after its response.
func TestStop_EndsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delay := time.Duration(0)
		s, tracers, stop := serveInMemory(t, "agent", echo(func() time.Duration { return delay }))
		defer stop()
		request := requestOf("PUT", "/v0.4/traces", "", 1)
		var conns []net.Conn
		var from []*bufio.Reader
		for i := range 3 {
			conns = append(conns, tracers.dial())
			defer conns[i].Close()
			from = append(from, bufio.NewReader(conns[i]))
			_, _ = io.WriteString(conns[i], request.text) // the first request opens a connection to the agent
			if got := answerOf(t, from[i]); got != request.answer {
				t.Errorf("answered %q", got)
			}
		}
		delay = 10 * time.Second
		_, _ = io.WriteString(conns[2], request.text)
		synctest.Wait()
		began := time.Now()
		drained := make(chan error)
		go func() { drained <- s.Drain(t.Context()) }()
		if got := answerOf(t, from[2]); got != request.answer {
			t.Errorf("answered %q", got)
		}
		for i := range conns {
			if _, err := from[i].Peek(1); err != io.EOF {
				t.Errorf("connection %d: %v", i, err)
			}
		}
		if err := <-drained; err != nil || time.Since(began) > 2*delay {
			t.Errorf("it ended after %s: %v", time.Since(began), err)
		}
	})
}
