package systemd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Open finds the service manager that the environment names. It returns nil if
// there is none.
func Open(log *slog.Logger) (*Supervisor, error) {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil, nil
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err == nil && watchdog < 0 {
		err = errors.New("the interval is longer than 292 years")
	}
	if err != nil {
		return nil, fmt.Errorf("read WATCHDOG_USEC: %w; unset it to run without a watchdog", err)
	}
	send := newNotifier().send
	if err := send("STATUS=starting"); err != nil {
		return nil, fmt.Errorf("write to NOTIFY_SOCKET: %w; unset it to run without a service manager", err)
	}
	return newSupervisor(send, watchdog, log), nil
}

// sendTimeout is how long one message may take. A datagram waits only while the
// receiver's queue is full.
const sendTimeout = time.Second

// notifier sends messages with a bound on each, which the library has not: it
// waits for as long as the service manager's queue is full. One message is sent at a
// time. The next waits for its turn, and then for the queue, within the same bound.
type notifier struct{ turn chan struct{} }

func newNotifier() *notifier { return &notifier{turn: make(chan struct{}, 1)} }

func (n *notifier) send(message string) error {
	timeout := time.After(sendTimeout)
	select {
	case n.turn <- struct{}{}:
	case <-timeout:
		return fmt.Errorf("an earlier message still waits: %w", os.ErrDeadlineExceeded)
	}
	sent := make(chan error, 1)
	go func() {
		_, err := daemon.SdNotify(false, message)
		<-n.turn
		sent <- err
	}()
	select {
	case err := <-sent:
		return err
	case <-timeout:
		return os.ErrDeadlineExceeded
	}
}
