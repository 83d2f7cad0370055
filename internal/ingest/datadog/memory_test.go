package datadog

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/conns"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
)

// serveOnSocket runs a server before an agent that takes connections and whatever comes
// on them, and says nothing.
func serveOnSocket(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	dir := t.TempDir()
	silent, err := net.Listen("unix", filepath.Join(dir, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
		}
	}()
	config := DefaultConfig()
	config.Socket = socket.Config{Path: filepath.Join(dir, "apm"), Mode: 0o600}
	config.Agent = receiver.Upstream{Network: "unix", Address: silent.Addr().String()}
	config.Log = slog.New(slog.DiscardHandler)
	config.Features = func() (receiver.Features, <-chan struct{}) { return receiver.Features{}, nil }
	if change != nil {
		change(&config)
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { cut(s) })
	return s
}

// cut ends a server with whatever is under way.
func cut(s *Server) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Drain(over)
}

func (s *Server) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", s.config.Socket.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// inUse is the memory of the heap and of the stacks.
func inUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// TestConnectionsKeepTheirPromise: a connection takes no more than its part of the
// budget, with a header as long as can be and in the midst of a body that streams, or
// with one of as many fields as fit that is not at its end.
func TestConnectionsKeepTheirPromise(t *testing.T) {
	const connections = 60
	long := "POST /telemetry/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n"
	for i := range conns.MaxHeaderLines - 5 {
		long += fmt.Sprintf("X-Header-%d: %s\r\n", i,
			strings.Repeat("x", conns.MaxHeaderBytes/conns.MaxHeaderLines-20))
	}
	long += "\r\n" + strings.Repeat("x", 1<<16)
	short := "POST /telemetry/x HTTP/1.1\r\n"
	for i := 0; len(short) < conns.MaxHeaderBytes+4000; i++ {
		short += fmt.Sprintf("%x:\r\n", i)
	}
	for name, request := range map[string]string{"streaming": long, "in its header": short} {
		s := serveOnSocket(t, func(c *Config) { c.MaxConnections = 2 * connections })
		before := inUse()
		for range connections {
			if _, err := io.WriteString(s.dial(t), request); err != nil {
				t.Fatal(err)
			}
		}
		for s.counters.other.Load() < connections && name == "streaming" {
			runtime.Gosched()
		}
		most := 0
		for range 20 {
			most = max(most, inUse()-before)
		}
		t.Logf("%s: %d bytes a connection", name, most/connections)
		if float64(most/connections) > connectionBytes*(1+detectorShare) {
			t.Errorf("%s: a connection takes %d bytes, %d are promised", name, most/connections,
				connectionBytes)
		}
	}
}
