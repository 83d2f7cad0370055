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

	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// echo is an agent that says what it got, after a while.
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

// sent is a request as it is written, and what an echo answers to it.
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

// TestPlainRequestsAreAnsweredWhereNetHTTPWaits: on a connection that carries others as
// well; behind one whose end only net/http knows all are net/http's.
func TestPlainRequestsAreAnsweredWhereNetHTTPWaits(t *testing.T) {
	traces := requestOf("PUT", "/v0.4/traces", "", 1)
	all := []struct {
		sent
		byNetHTTP uint64
	}{
		{traces, 0}, // whose connection to the agent is made at once
		{traces, 0},
		{requestOf("POST", "/v1.0/traces", "Connection: keep-alive\r\n", 5000), 0},
		{requestOf("GET", "/info", "", 0), 1},
		{requestOf("PUT", "/v0.5/traces", "", 3000), 0},
		{requestOf("POST", "/telemetry/x", "", 9000), 1},
		{traces, 0},
		{requestOf("PUT", "/v0.4/traces?a=b", "", 1), 1},
		{requestOf("PUT", "/v0.4/traces", "", http1.MaxBody), 0},
		{requestOf("PUT", "/v0.4/traces", "", http1.MaxBody+1), 1},
		{requestOf("PUT", "/v0.4/traces", "X: "+strings.Repeat("x", http1.MaxHead), 1), 1},
		{traces, 1},
	}
	all[7].answer = "PUT /v0.4/traces 1"
	all[10].text = strings.Replace(all[10].text, "xContent", "x\r\nContent", 1)
	synctest.Test(t, func(t *testing.T) {
		s, tracers, stop := serveInMemory(t, "agent", echo(atOnce))
		defer stop()
		conn := tracers.dial()
		defer conn.Close()
		from := bufio.NewReader(conn)
		for i, request := range all {
			before := s.Stats().ByNetHTTP
			_, _ = io.WriteString(conn, request.text)
			if got := answerOf(t, from); got != request.answer {
				t.Errorf("request %d was answered %q, want %q", i, got, request.answer)
			}
			if by := s.Stats().ByNetHTTP - before; by != request.byNetHTTP {
				t.Errorf("request %d: net/http answered %d", i, by)
			}
		}
		together := tracers.dial() // three requests at once
		defer together.Close()
		from.Reset(together)
		before, telemetry := s.Stats().ByNetHTTP, requestOf("POST", "/telemetry/x", "", 9)
		go func() { _, _ = io.WriteString(together, telemetry.text+traces.text+traces.text) }()
		for _, want := range []string{telemetry.answer, traces.answer, traces.answer} {
			if got := answerOf(t, from); got != want {
				t.Errorf("answered %q, want %q", got, want)
			}
		}
		if by := s.Stats().ByNetHTTP - before; by != 1 {
			t.Errorf("of three requests at once net/http answered %d", by)
		}
	})
}

// TestABodyIsNoRequest: net/http has read the head of a second request together with the end of
// a first one in chunks. What that one's body says is no request of the tracer's.
func TestABodyIsNoRequest(t *testing.T) {
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

// TestAnAnswerThatIsNotWholeIsWaitedFor: of an agent that writes it in two pieces.
func TestAnAnswerThatIsNotWholeIsWaitedFor(t *testing.T) {
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
		for i := range 3 { // behind the first there is a connection to the agent
			_, _ = io.WriteString(conn, requestOf("PUT", "/v0.4/traces", "", 1).text)
			if got := answerOf(t, from); got != "halfhalf" {
				t.Fatalf("request %d was answered %q", i, got)
			}
		}
	})
}

// answerOf reads the body of a good answer.
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

// TestEachRequestOfAConnectionIsAnswered: in their order, whatever they are, however they
// are cut, whether the tracer waits for an answer or not, and whether the agent takes its
// time or not; and nothing of them is held on.
func TestEachRequestOfAConnectionIsAnswered(t *testing.T) {
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
				delay = func() time.Duration { return time.Duration(rand.IntN(3)) * http1.SlowAnswer }
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
			if open := s.Stats().Connections; open != 0 || s.Stats().BufferedBytes != 0 ||
				s.Stats().Remembered != 0 {
				t.Errorf("round %d: %d connections, %d bytes of bodies and %d bodies are left", seed, open,
					s.Stats().BufferedBytes, s.Stats().Remembered)
			}
		})
	}
}

// expectContinue reads what goes before an answer.
func expectContinue(from *bufio.Reader) {
	if line, _ := from.Peek(12); string(line) == "HTTP/1.1 100" {
		_, _ = http.ReadResponse(from, nil)
	}
}

// TestConnectionsOfPlainRequestsEndAtTheStop: one of which net/http has seen no request yet,
// and that is idle, at once; one with a request under way when that is answered.
func TestConnectionsOfPlainRequestsEndAtTheStop(t *testing.T) {
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
			_, _ = io.WriteString(conns[i], request.text) // the first one makes a connection to the agent
			if got := answerOf(t, from[i]); got != request.answer {
				t.Errorf("answered %q", got)
			}
		}
		delay = http1.SlowAnswer / 2
		_, _ = io.WriteString(conns[2], request.text)
		synctest.Wait()
		begun := time.Now()
		go func() {
			if err := s.Drain(t.Context()); err != nil || time.Since(begun) > http1.SlowAnswer {
				t.Errorf("it ended after %s: %v", time.Since(begun), err)
			}
		}()
		if got := answerOf(t, from[2]); got != request.answer {
			t.Errorf("answered %q", got)
		}
		for i := range conns {
			if _, err := from[i].Peek(1); err != io.EOF {
				t.Errorf("connection %d: %v", i, err)
			}
		}
		synctest.Wait()
	})
}
