package systemd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

const (
	// statusEvery is the interval of status lines, unless the watchdog requires a shorter one.
	statusEvery = 10 * time.Second
	// sendTimeout limits the time to send one message. Without it a write would block while the manager's queue is full.
	sendTimeout = time.Second
)

// Supervisor is the service manager that started the daemon. A nil Supervisor does nothing.
type Supervisor struct {
	send     func(message string) error
	watchdog time.Duration // watchdog interval; 0 without a watchdog
	log      *slog.Logger

	stopping   atomic.Bool   // whether the daemon is shutting down
	stop, done chan struct{} // stop is closed to end watch, done when watch has ended
	lastError  string        // error of the last report; "" if there was none
}

// Open connects to the service manager, whose socket is in the environment variable NOTIFY_SOCKET. If the
// variable is not set, it returns nil, which is a valid Supervisor without effect.
func Open(log *slog.Logger) (*Supervisor, error) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil, nil
	}
	watchdog, err := watchdogInterval()
	if err != nil {
		return nil, fmt.Errorf("read WATCHDOG_USEC: %w; unset it to run without a watchdog", err)
	}
	if err := send("STATUS=starting"); err != nil {
		return nil, fmt.Errorf("write to NOTIFY_SOCKET: %w; unset it to run without a service manager", err)
	}
	return newSupervisor(send, watchdog, log), nil
}

// watchdogInterval returns the interval of the watchdog, or 0 if there is no watchdog.
func watchdogInterval() (time.Duration, error) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return 0, err
	}
	if interval < 0 { // the conversion to nanoseconds has overflowed
		return 0, errors.New("the interval is longer than 292 years")
	}
	return interval, nil
}

func newSupervisor(send func(string) error, watchdog time.Duration, log *slog.Logger) *Supervisor {
	return &Supervisor{
		send: send, watchdog: watchdog, log: log, stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// send sends one message to the service manager.
func send(message string) error {
	conn, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(message))
	return err
}

// Ready reports to the service manager that clients can connect. It starts a goroutine that calls check
// periodically, and sends the status and a watchdog notification to the service manager. If check returns an
// error, the goroutine sends no notification, so that the service manager restarts the daemon.
func (s *Supervisor) Ready(check func() (status string, err error)) {
	if s == nil {
		return
	}
	_ = s.send(daemon.SdNotifyReady) // if it fails, the next report fails and logs the error
	go s.watch(check)
}

// Stopping reports to the service manager that the daemon is shutting down. It also extends the timeout of
// the service manager for the shutdown to a little more than grace.
func (s *Supervisor) Stopping(grace time.Duration) {
	if s == nil { // there is no service manager
		return
	}
	s.stopping.Store(true)
	timeout := grace + sendTimeout
	report := fmt.Sprintf("%s\nSTATUS=stopping: delivering what was counted\nEXTEND_TIMEOUT_USEC=%d",
		daemon.SdNotifyStopping, timeout.Microseconds())
	_ = s.send(report) // the daemon stops even if the service manager can't be reached
}

// Close stops the goroutine that Ready has started.
func (s *Supervisor) Close() {
	if s == nil {
		return
	}
	close(s.stop)
	<-s.done
}

// watch calls check and sends reports periodically until Close. The period is statusEvery, or half of the
// watchdog interval if that is shorter.
func (s *Supervisor) watch(check func() (status string, err error)) {
	defer close(s.done)
	interval := statusEvery
	if s.watchdog > 0 {
		interval = min(interval, s.watchdog/2)
	}
	interval = max(interval, time.Millisecond) // NewTicker panics for 0
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			err := s.report(check)
			s.logFailure(err)
		}
	}
}

// report sends the status line that check returns to the service manager, and notifies the watchdog unless
// check returns an error. During the shutdown it only notifies the watchdog, without calling check.
func (s *Supervisor) report(check func() (status string, err error)) error {
	if s.stopping.Load() {
		return s.send(daemon.SdNotifyWatchdog)
	}
	status, checkErr := check()
	message := daemon.SdNotifyWatchdog + "\nSTATUS=" + oneLine(status)
	if checkErr != nil {
		message = "STATUS=" + oneLine(checkErr.Error())
	}
	if err := s.send(message); err != nil {
		return fmt.Errorf("write to NOTIFY_SOCKET: %w", err)
	}
	return checkErr
}

// logFailure logs err, the reason why the watchdog was not notified. It logs nothing if err is nil, or if the
// previous call had an error with the same text.
func (s *Supervisor) logFailure(err error) {
	if err == nil {
		s.lastError = ""
		return
	}
	if err.Error() != s.lastError {
		s.log.Error("skipped a watchdog notification; the service manager will restart the daemon", "error", err)
	}
	s.lastError = err.Error()
}

// oneLine replaces line breaks by spaces. In a message, each line would be another assignment.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }
