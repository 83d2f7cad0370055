package program

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// TestLog_FormatOfLibraries makes an agent send an unsolicited response, about which net/http logs
// a line. The line must have the daemon's format. The default logger of net/http would block deliveries
// while the log is not read.
func TestLog_FormatOfLibraries(t *testing.T) {
	dir := sockets(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go respondTwice(conn)
		}
	}()
	daemon, _ := daemonWithLog(t, "http://"+listener.Addr().String(), filepath.Join(dir, "s"), "--apm-socket",
		filepath.Join(dir, "t"), "--log-level", "debug")
	tracer, err := net.Dial("unix", filepath.Join(dir, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer tracer.Close()
	if _, err := io.WriteString(tracer, "GET /other HTTP/1.1\r\nHost: agent\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	eventually.True(t, "the line of net/http", func() bool {
		select {
		case line = <-daemon.lines:
			msg, _ := line["msg"].(string)
			return strings.Contains(msg, "Unsolicited response")
		default:
			return false
		}
	})
	if line["level"] != "DEBUG" {
		t.Errorf("log line %v", line)
	}
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, _ := daemon.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// respondTwice sends a response to a request, and a second one later.
func respondTwice(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	if _, err := http.ReadRequest(in); err != nil {
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
	time.Sleep(50 * time.Millisecond) // otherwise the second response could be taken for part of the first body
	_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
	_, _ = in.ReadByte() // until the daemon closes the connection
}
