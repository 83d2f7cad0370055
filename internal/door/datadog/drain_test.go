package datadog_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
)

// TestWhoConnectedBeforeTheStopIsAnswered: two hundred tracers have connected and written their
// request when a daemon starts that stops at once. Each is answered, and each trace is in
// the books once.
func TestWhoConnectedBeforeTheStopIsAnswered(t *testing.T) {
	agent := startAgent(t)
	p := prepare(t, agent, func(c *daemon.Config) { c.ShutdownGrace = 4 * time.Minute })
	const tracers = 200
	var answering sync.WaitGroup
	for n := range tracers {
		conn, err := net.Dial("unix", p.socket)
		if err != nil {
			t.Fatal(err)
		}
		body := trace()
		body = bytes.Replace(body, []byte("GET /"), []byte(fmt.Sprintf("GT%03d", n)), 1) // one that no other has
		if _, err := fmt.Fprintf(conn, "POST /v0.4/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/msgpack\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
		answering.Go(func() {
			defer conn.Close()
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Errorf("%v, %v", answer, err)
			}
		})
	}
	p.Start()
	books := p.stop()
	answering.Wait()
	if got := len(agent.of("/v0.4/traces")); got != tracers {
		t.Errorf("the agent has %d of %d requests", got, tracers)
	}
	if books.Received != tracers {
		t.Errorf("the books have received %d", books.Received)
	}
}
