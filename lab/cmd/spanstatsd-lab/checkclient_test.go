package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// TestCheckClient_Verdict: the exit code is the verdict, for use in continuous integration.
// One environment variable gives the command and the tracer the same socket.
func TestCheckClient_Verdict(t *testing.T) {
	for _, test := range []struct {
		name string
		send func(t *testing.T, path string)
		code int
		says string
	}{
		{"well", sendOneSpan, 0, `"well":true`},
		{"malformed", sendGarbage, 1, `"reason":"too_large"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(sockets(t), "s")
			t.Setenv(client.SocketEnv, path)
			cmd := program(t, "check-client", "--connections=1", "--json")
			var out bytes.Buffer
			cmd.Stdout = &out
			stderr, err := cmd.StderrPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(stderr)
			if line, err := lines.ReadString('\n'); line != "listening on "+path+"\n" {
				t.Errorf("it begins with %q: %v", line, err)
			}
			test.send(t, path)
			said, _ := io.ReadAll(lines) // all remaining output
			_ = cmd.Wait()               // the exit code is checked below
			if code := cmd.ProcessState.ExitCode(); code != test.code ||
				!strings.Contains(out.String(), test.says) {
				t.Errorf("code %d, want %d; %q is not in:\n%s%s", code, test.code, test.says, out.String(),
					said)
			}
		})
	}
}

func sendOneSpan(t *testing.T, _ string) {
	t.Helper()
	c, err := client.Open(client.Config{Origin: client.Origin{Service: "shop"}})
	if err != nil {
		t.Fatal(err)
	}
	c.Publish([]client.Snapshot{{
		Key: client.Key{Service: "shop", Operation: "op", Resource: "r"},
		End: time.Now(),
	}})
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func sendGarbage(t *testing.T, path string) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
}

// TestCheckClient_Invalid: an unusable socket and invalid flags are errors, each with the exit code of
// its kind.
func TestCheckClient_Invalid(t *testing.T) {
	for _, test := range []struct {
		args string
		code int
		says string
	}{
		{"check-client x", 2, `unknown command "x"`},
		{"check-client --connections=-1", 2, "must not be negative"},
		{"check-client --nothing", 2, "unknown flag"},
		{"check-client --socket=/nowhere/at/all", 1, "listen on socket"},
	} {
		cmd := program(t, strings.Fields(test.args)...)
		out, _ := cmd.CombinedOutput() // the exit code is checked below
		if code := cmd.ProcessState.ExitCode(); code != test.code ||
			!strings.Contains(string(out), test.says) {
			t.Errorf("%s: code %d, %s; want %d and %q", test.args, code, out, test.code, test.says)
		}
	}
}

// TestCheckClient_SecondSignal: if the reader of stdout stops reading, check-client blocks in a
// write, so the first signal has no effect. The second signal ends the process.
func TestCheckClient_SecondSignal(t *testing.T) {
	path := filepath.Join(sockets(t), "s")
	unread, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	defer out.Close()
	if err := out.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("there is room for all of it: %v", err)
	}
	cmd := program(t, "check-client", "--socket", path)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	eventually.True(t, "a connection", func() bool {
		conn, err := net.Dial("unix", path)
		if err != nil {
			return false
		}
		_, err = conn.Write([]byte("no hello"))
		return err == nil && conn.Close() == nil
	})
	eventually.True(t, "the end", func() bool {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			return true
		case <-time.After(10 * time.Millisecond):
			return false
		}
	})
}
