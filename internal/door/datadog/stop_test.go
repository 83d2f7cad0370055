package datadog

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/door"
)

// TestWhoConnectedOverTCPBeforeTheStopIsAnswered: two hundred tracers have connected and
// written their request when a server starts that stops at once.
func TestWhoConnectedOverTCPBeforeTheStopIsAnswered(t *testing.T) {
	agent := httptest.NewServer(echo(atOnce).Handler)
	defer agent.Close()
	config := DefaultConfig()
	config.Addr, config.Agent = "127.0.0.1:0", door.Behind{
		Network: "tcp",
		Address: agent.Listener.Addr().String(),
	}
	config.Log = slog.New(slog.DiscardHandler)
	config.Features = func() (door.Features, <-chan struct{}) { return door.Features{}, nil }
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	request := requestOf("PUT", "/v0.4/traces", "", 1)
	var answering sync.WaitGroup
	for range 200 {
		conn, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request.text); err != nil {
			t.Fatal(err)
		}
		answering.Go(func() {
			defer conn.Close()
			if got := answerOf(t, bufio.NewReader(conn)); got != request.answer {
				t.Errorf("answered %q", got)
			}
		})
	}
	s.Start()
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	answering.Wait()
	if conn, err := net.Dial("tcp", s.Addr()); err == nil {
		conn.Close()
		t.Error("somebody connected behind the stop")
	}
}
