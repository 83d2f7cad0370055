package systemd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
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
	send := new(notifier).send
	if err := send("STATUS=starting"); err != nil {
		return nil, fmt.Errorf("write to NOTIFY_SOCKET: %w; unset it to run without a service manager", err)
	}
	return newSupervisor(send, watchdog, log), nil
}

// sendTimeout is how long one message may take. A datagram waits only while the
// receiver's queue is full.
const sendTimeout = time.Second

// notifier sends messages with a bound on each, which the library has not: it
// waits for as long as the service manager's queue is full. At most one message
// waits; what is sent meanwhile fails at once.
type notifier struct{ sending sync.Mutex }

func (n *notifier) send(message string) error {
	if !n.sending.TryLock() {
		return errors.New("an earlier message still waits")
	}
	sent := make(chan error, 1)
	go func() {
		_, err := daemon.SdNotify(false, message)
		n.sending.Unlock()
		sent <- err
	}()
	select {
	case err := <-sent:
		return err
	case <-time.After(sendTimeout):
		return os.ErrDeadlineExceeded
	}
}
