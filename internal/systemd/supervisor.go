package systemd

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// statusEvery is how often the status line is renewed where no watchdog asks
// for more.
const statusEvery = 10 * time.Second

// sendTimeout is how long one message may take. A datagram waits only while the
// receiver's queue is full.
const sendTimeout = time.Second

// Supervisor is the service manager that started us.
type Supervisor struct {
	send     func(message string) error
	watchdog time.Duration // 0: there is none
	log      *slog.Logger

	stopping atomic.Bool
	deaf     atomic.Bool // a message was not taken, and the log says so
	stop     chan struct{}
	done     chan struct{}
	unwell   bool // at the last report; only watch uses it
}

func newSupervisor(send func(string) error, watchdog time.Duration, log *slog.Logger) *Supervisor {
	return &Supervisor{
		send: send, watchdog: watchdog, log: log, stop: make(chan struct{}),
		done: make(chan struct{}),
	}
}

// Ready says that tracers may connect. From then on, until Close, it reports what
// check returns: one line on how the daemon is, and an error if a restart would
// help.
func (s *Supervisor) Ready(check func() (string, error)) {
	if s == nil {
		return
	}
	s.tell(daemon.SdNotifyReady)
	go s.watch(check)
}

// Stopping says that the daemon ends within the grace, which may be longer than
// what the service manager would wait without being told.
func (s *Supervisor) Stopping(grace time.Duration) {
	if s == nil {
		return
	}
	s.stopping.Store(true)
	s.tell(daemon.SdNotifyStopping, "STATUS=stopping: delivering what was counted",
		fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (grace+sendTimeout).Microseconds()))
}

// Close ends the messages.
func (s *Supervisor) Close() {
	if s == nil {
		return
	}
	close(s.stop)
	<-s.done
}

// watch reports twice in each interval of the watchdog.
func (s *Supervisor) watch(check func() (string, error)) {
	defer close(s.done)
	every := statusEvery
	if s.watchdog > 0 {
		every = max(min(every, s.watchdog/2), time.Millisecond)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.report(check)
		}
	}
}

// report feeds the watchdog if the daemon is well.
func (s *Supervisor) report(check func() (string, error)) {
	if s.stopping.Load() {
		s.tell(daemon.SdNotifyWatchdog)
		return
	}
	status, err := check()
	if err != nil {
		if !s.unwell {
			s.log.Error("the watchdog is not fed any more; the service manager will restart the daemon",
				"error", err)
		}
		s.unwell = true
		s.tell("STATUS=" + oneLine(err.Error()))
		return
	}
	s.unwell = false
	s.tell(daemon.SdNotifyWatchdog, "STATUS="+oneLine(status))
}

func (s *Supervisor) tell(lines ...string) {
	err := s.send(strings.Join(lines, "\n"))
	if err != nil && s.deaf.CompareAndSwap(false, true) {
		s.log.Warn("the service manager did not take a message; it may end the daemon for not hearing from "+
			"it", "error", err)
	}
}

// oneLine keeps a status from being read as more assignments than one.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }
