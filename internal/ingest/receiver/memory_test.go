package receiver_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// TestBody_ContentLengthReservesNoMemory checks that memory is reserved only for received bytes: forty requests with a
// Content-Length of 1 MiB but without a body leave memory for other requests.
func TestBody_ContentLengthReservesNoMemory(t *testing.T) {
	const stalled = 40
	of := func(c *receiver.Config) { c.MaxConnections, c.MaxBody, c.MaxBodyBytes = 4*stalled, 1<<20, 8<<20 }
	each(t, of, took, func(s *subject) {
		s.start()
		for range stalled {
			fmt.Fprintf(s.dial(),
				"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 1000000\r\n\r\nhalf",
				s.path, s.media)
		}
		eventually.True(s.t, "their requests are in flight", func() bool {
			return s.stats().BufferedBytes >= stalled*64<<10
		})
		if held := s.stats().BufferedBytes; held != stalled*64<<10 {
			s.t.Errorf("%d requests that sent four bytes each hold %d bytes", stalled, held)
		}
		c := s.dial()
		s.write(c, s.body(1))
		if code, err := status(c); code != http.StatusOK || s.requests()["counted"] != 1 {
			s.t.Errorf("answered %d, %v; %v; %+v", code, err, s.requests(), s.stats())
		}
	})
}

// TestBody_MemoryFullForwardsAllOrNothing exhausts the memory after a half of the body. The upstream gets the
// complete body, or the sender is asked to retry.
func TestBody_MemoryFullForwardsAllOrNothing(t *testing.T) {
	const most = 256 << 10
	came := make(chan []byte, 1)
	takes := func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		came <- body
	}
	of := func(c *receiver.Config) { c.MaxBody, c.MaxBodyBytes = most, most }
	each(t, of, takes, func(s *subject) {
		s.start()
		half := s.text(bytes.Repeat([]byte("stalled "), most/16))
		if _, err := s.dial().Write(half[:len(half)*3/4]); err != nil {
			s.t.Fatal(err)
		}
		eventually.True(s.t, "half of the memory is used", func() bool {
			return s.stats().BufferedBytes >= most/2
		})
		body := bytes.Repeat([]byte("large body "), most*3/4/11)
		c := s.dial()
		s.write(c, body)
		code, err := status(c)
		if code == http.StatusOK {
			eventually.True(s.t, "the upstream has a body", func() bool { return len(came) == 1 })
		}
		switch {
		case code == http.StatusServiceUnavailable && s.requests()["busy"] == 1 && len(came) == 0:
		case code == http.StatusOK && s.requests()["too_large"] == 1 && bytes.Equal(<-came, body):
		default:
			s.t.Errorf("answered %d, %v; %v", code, err, s.requests())
		}
	})
}

// TestConnection_RejectionIsLogged checks that log lines about rejected connections have the process id, at a
// limited rate.
func TestConnection_RejectionIsLogged(t *testing.T) {
	var log bytes.Buffer // written before the response
	of := func(c *receiver.Config) {
		// the test itself uses one of the connections
		c.MaxConnections, c.Log = 2, slog.New(slog.NewTextHandler(&log, nil))
	}
	each(t, of, took, func(s *subject) {
		log.Reset()
		s.start()
		fmt.Fprintf(s.dial(), "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 9\r\n\r\n",
			s.path, s.media)
		eventually.True(s.t, "its request is in flight", func() bool { return s.stats().BufferedBytes > 0 })
		for range 3 {
			if answer, _ := io.ReadAll(s.dial()); !bytes.HasPrefix(answer, []byte("HTTP/1.1 503 ")) {
				s.t.Errorf("one too many got %q", answer)
			}
		}
		process := fmt.Sprintf("process=%d", os.Getpid())
		if text := log.String(); strings.Count(text, "connection rejected") != 1 || !strings.Contains(text, process) {
			s.t.Errorf("the log has %q", text)
		}
	})
}
