package systemd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
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
	if err := send("STATUS=starting"); err != nil {
		return nil, fmt.Errorf("write to NOTIFY_SOCKET: %w; unset it to run without a service manager", err)
	}
	return newSupervisor(send, watchdog, log), nil
}

// send sends one message with a bound on it, which the library has not: it waits for
// as long as the service manager's queue is full.
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
