package apm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/ingest"
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
	config.Socket = ingest.Socket{Path: filepath.Join(dir, "apm"), Mode: 0o600}
	config.Agent = Agent{"unix", silent.Addr().String()}
	config.Log = slog.New(slog.DiscardHandler)
	if change != nil {
		change(&config)
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.http.Serve(s.listeners[0]) }()
	t.Cleanup(func() { s.http.Close(); s.Abandon(); s.transport.CloseIdleConnections(); <-ended })
	return s
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
	for i := range maxHeaderLines - 5 {
		long += fmt.Sprintf("X-Header-%d: %s\r\n", i, strings.Repeat("x", maxHeaderBytes/maxHeaderLines-20))
	}
	long += "\r\n" + strings.Repeat("x", 1<<16)
	short := "POST /telemetry/x HTTP/1.1\r\n"
	for i := 0; len(short) < maxHeaderBytes+4000; i++ {
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
		if most/connections > connectionBytes {
			t.Errorf("%s: a connection takes %d bytes, %d are promised", name, most/connections, connectionBytes)
		}
	}
}

// TestCountersKeepTheirPromise: whatever a body is made of, counting it makes a counter
// hold no more than its part of the budget, and reading statistics no more than theirs.
func TestCountersKeepTheirPromise(t *testing.T) {
	for _, length := range []int{64 << 10, 1 << 20, 25 << 20} {
		for name, body := range greedy(length) {
			format := FormatV05
			if name == "strings of v1" {
				format = FormatV1
			}
			c, w := NewCounter(), wishesOf(t)
			before := inUse()
			err := c.Count(format, body, "go", false, w)
			held := inUse() - before
			t.Logf("%d KiB of %s: %d KiB held, %d promised: %v", len(body)>>10, name, held>>10, counterBytes(len(body))>>10, err)
			if held > counterBytes(length) {
				t.Errorf("%d bytes of %s made it hold %d", len(body), name, held)
			}
			if held := c.kept(); held != c && len(body) < 64<<10 {
				t.Errorf("a counter of %s was not kept", name)
			}
			runtime.KeepAlive(c)
			runtime.KeepAlive(body)
		}
		body := groupsOfNothing(length)
		g := &groups{}
		before := inUse()
		_, ok := g.read(body, nil)
		held := inUse() - before
		if promised := groupsBytes(length); held > promised {
			t.Errorf("%d bytes of statistics made us hold %d, %d are promised: %v", length, held, promised, ok)
		}
		runtime.KeepAlive(g)
	}
}

// array32 begins an array, or a map with another lead.
func array32(lead byte, n int) []byte {
	return binary.BigEndian.AppendUint32([]byte{lead}, uint32(n))
}

// greedy are bodies of that length which are made of what costs most of ours.
func greedy(length int) map[string][]byte {
	dict := append([]byte{0x92, 0x96, 0xa0, 0xa1, 's', 0xa1, 'o', 0xac}, "_dd.measured"...)
	dict = append(append(dict, 0xad), "_dd.base_service"[:13]...)
	dict = append(dict, 0xa1, '1')
	span := []byte{0x9c, 1, 2, 2, 1, 1, 0, 0xcf, 0x0d, 0xe0, 0xb6, 0xb3, 0xa7, 0x64, 0, 0, 1, 0, 0x80, 0x80, 0}
	spans := func(n int) []byte { return bytes.Repeat(span, n) }
	n := length / len(span)
	tags := length / 2
	all := map[string][]byte{
		"spans":  slices.Concat(dict, []byte{0x91}, array32(0xdd, n), spans(n)),
		"traces": slices.Concat(dict, array32(0xdd, n), bytes.Repeat(append([]byte{0x91}, span...), n)),
		"tags": slices.Concat(dict, []byte{0x91, 0x91}, span[:len(span)-3], []byte{0x80},
			array32(0xdf, tags), bytes.Repeat([]byte{3, 1}, tags), []byte{0}),
	}
	long := bytes.Repeat([]byte{'x'}, length/4)
	several := length / 2 / len(span)
	all["labels"] = slices.Concat([]byte{0x92, 0x94, 0xa0, 0xa1, 's'}, array32(0xdb, len(long)), long, []byte{0xa1, 'x'},
		[]byte{0x91}, array32(0xdd, several), spans(several))
	broken := slices.Concat(bytes.Repeat([]byte{0xff}, 4000), []byte{'x'})
	all["broken labels"] = slices.Concat([]byte{0x92, 0x94, 0xa0, 0xa1, 's'}, array32(0xdb, len(broken)), broken, []byte{0xa1, 'x'},
		[]byte{0x91}, array32(0xdd, several), spans(several))
	texts := length / 4
	list := array32(0xdd, texts)
	for i := range texts {
		list = append(list, 0xa3, byte(i), byte(i>>8), byte(i>>16))
	}
	all["strings"] = slices.Concat([]byte{0x92}, list, []byte{0x90})
	all["strings of v1"] = slices.Concat([]byte{0x81, 0x01}, list)
	return all
}

// groupsOfNothing are statistics of many groups with many tags, and little else.
func groupsOfNothing(length int) []byte {
	group := append(append([]byte{0x82, 0xa4}, "Hits"...), 1, 0xa8)
	group = append(group, "PeerTags"...)
	group = append(group, 0x99, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0)
	n := length / len(group)
	body := append(append([]byte{0x81, 0xa5}, "Stats"...), 0x91, 0x81, 0xa5)
	body = append(body, "Stats"...)
	return slices.Concat(body, array32(0xdd, n), bytes.Repeat(group, n))
}
