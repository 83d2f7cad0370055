package datadog

import (
	"io"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/eventually"
)

// TestOneConnectionTooMany: it is told so before it has said anything, and those inside
// notice nothing.
func TestOneConnectionTooMany(t *testing.T) {
	s := serveOnSocket(t, func(c *Config) { c.MaxConnections = 2 }) // and this process has one of them
	inside := s.dial(t)
	const request = "POST /telemetry/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
	if _, err := io.WriteString(inside, request); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a connection is refused", func() bool { return s.counters.other.Load() > 0 })
	answer, _ := io.ReadAll(s.dial(t))
	if !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || s.Stats().Refused != 1 || s.Stats().Connections != 1 {
		t.Errorf("one too many got %q, the statistics are %+v", answer, s.Stats())
	}
	inside.Close()
	eventually.True(t, "all connections are closed", func() bool { return s.Stats().Connections == 0 })
	if _, err := io.WriteString(s.dial(t), request); err != nil {
		t.Error(err)
	}
	eventually.True(t, "two connections are refused", func() bool { return s.counters.other.Load() >= 2 })
}
