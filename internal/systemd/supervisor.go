package systemd

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

// statusEvery is how often the status line is renewed where no watchdog asks
// for more.
const statusEvery = 10 * time.Second

// messenger takes messages to the service manager.
type messenger interface {
	send(message string) error
	close()
}

// Supervisor is the service manager that started us.
type Supervisor struct {
	to       messenger
	watchdog time.Duration // 0: there is none
	log      *slog.Logger

	stopping atomic.Bool
	deaf     atomic.Bool // a message was not taken, and the log has it
	stop     chan struct{}
	done     chan struct{}
	silent   bool // the last look found the daemon unwell; of the goroutine
}

func newSupervisor(to messenger, watchdog time.Duration, log *slog.Logger) *Supervisor {
	return &Supervisor{to: to, watchdog: watchdog, log: log, stop: make(chan struct{}), done: make(chan struct{})}
}

// Ready says that tracers may connect, and from then on, until Close, what look
// answers: one line on how the daemon is, and an error if a restart would help.
func (s *Supervisor) Ready(look func() (string, error)) {
	if s == nil {
		return
	}
	s.tell("READY=1")
	go s.watch(look)
}

// Stopping says that the daemon ends within the grace, which may be longer than
// what the service manager would wait without being told.
func (s *Supervisor) Stopping(grace time.Duration) {
	if s == nil {
		return
	}
	s.stopping.Store(true)
	s.tell("STOPPING=1", "STATUS=stopping: delivering what was counted",
		fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (grace+patience).Microseconds()))
}

// Close ends the messages.
func (s *Supervisor) Close() {
	if s == nil {
		return
	}
	close(s.stop)
	<-s.done
	s.to.close()
}

// watch reports twice in each interval of the watchdog.
func (s *Supervisor) watch(look func() (string, error)) {
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
			s.report(look)
		}
	}
}

// report feeds the watchdog if the daemon is well.
func (s *Supervisor) report(look func() (string, error)) {
	if s.stopping.Load() {
		s.tell("WATCHDOG=1")
		return
	}
	status, unwell := look()
	if unwell != nil {
		if !s.silent {
			s.log.Error("the watchdog is not fed any more; the service manager will restart the daemon", "error", unwell)
		}
		s.silent = true
		s.tell("STATUS=" + oneLine(unwell.Error()))
		return
	}
	s.silent = false
	s.tell("WATCHDOG=1", "STATUS="+oneLine(status))
}

func (s *Supervisor) tell(lines ...string) {
	err := s.to.send(strings.Join(lines, "\n"))
	if err != nil && s.deaf.CompareAndSwap(false, true) {
		s.log.Warn("the service manager did not take a message; it may end the daemon for not hearing from it", "error", err)
	}
}

// oneLine keeps a status from being read as more assignments than one.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }
