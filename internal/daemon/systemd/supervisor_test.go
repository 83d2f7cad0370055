package systemd

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"
)

// recorder is a service manager that records the messages.
type recorder struct {
	mu       sync.Mutex
	messages []string
	fails    bool
}

func (r *recorder) send(message string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails {
		return io.ErrClosedPipe
	}
	r.messages = append(r.messages, message)
	return nil
}

// take returns the messages since the last call.
func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.Join(r.messages, "\n--\n")
	r.messages = nil
	return text
}

func expect(t *testing.T, when, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s the service manager was notified of\n%s\nwant\n%s", when, got, want)
	}
}

// TestWatchdog_OnlyWhileHealthy simulates a daemon with an error, its recovery, and a shutdown.
func TestWatchdog_OnlyWhileHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, log := &recorder{}, &bytes.Buffer{}
		s := newSupervisor(to.send, 8*time.Second, slog.New(slog.NewTextHandler(log, nil)))
		var illness atomic.String
		s.Ready(func() (string, error) {
			if text := illness.Load(); text != "" {
				return "", errors.New(text)
			}
			return "12 spans", nil
		})
		expect(t, "at the start", to.take(), "READY=1")

		next := func() {
			time.Sleep(4 * time.Second)
			synctest.Wait()
		}
		next()
		expect(t, "after half the interval", to.take(), "WATCHDOG=1\nSTATUS=12 spans")
		illness.Store("no interval has ended\nWATCHDOG=1")
		next()
		next()
		expect(t, "while unwell", to.take(),
			"STATUS=no interval has ended WATCHDOG=1\n--\nSTATUS=no interval has ended WATCHDOG=1")
		if lines := strings.Count(log.String(), "skipped a watchdog"); lines != 1 {
			t.Errorf("%d lines were logged about the illness:\n%s", lines, log)
		}
		illness.Store("")
		next()
		expect(t, "after the illness", to.take(), "WATCHDOG=1\nSTATUS=12 spans")

		s.Stopping(5 * time.Second)
		expect(t, "at the stop", to.take(),
			"STOPPING=1\nSTATUS=stopping: delivering what was counted\nEXTEND_TIMEOUT_USEC=6000000")
		illness.Store("no cycle is sealed any more")
		next()
		expect(t, "while stopping", to.take(), "WATCHDOG=1")
		s.Close()
	})
}

// TestWatchdog_HangingCheck checks that a hanging check does not feed the watchdog.
func TestWatchdog_HangingCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &recorder{}
		s := newSupervisor(to.send, time.Second, slog.New(slog.DiscardHandler))
		answer := make(chan struct{})
		s.Ready(func() (string, error) { <-answer; return "", nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, "in a minute without an answer", to.take(), "READY=1")
		close(answer)
		s.Close()
	})
}

// TestStatus_WithoutWatchdog checks that the status line is sent every ten seconds.
func TestStatus_WithoutWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &recorder{}
		s := newSupervisor(to.send, 0, slog.New(slog.DiscardHandler))
		s.Ready(func() (string, error) { return "well", nil })
		time.Sleep(21 * time.Second)
		synctest.Wait()
		s.Close()
		expect(t, "in 21 seconds", to.take(),
			"READY=1\n--\nWATCHDOG=1\nSTATUS=well\n--\nWATCHDOG=1\nSTATUS=well")
	})
}

func TestNotify_FailureIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		s := newSupervisor((&recorder{fails: true}).send, time.Second,
			slog.New(slog.NewTextHandler(log, nil)))
		s.Ready(func() (string, error) { return "", nil })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		s.Close()
		if lines := strings.Count(log.String(), "NOTIFY_SOCKET"); lines != 1 {
			t.Errorf("%d lines:\n%s", lines, log)
		}
	})
}
