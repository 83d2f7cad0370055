package systemd

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Open connects to the service manager that the environment names. It returns
// nil if there is none.
func Open(getenv func(string) string, log *slog.Logger) (*Supervisor, error) {
	address := getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil, nil
	}
	if !strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "@") {
		return nil, fmt.Errorf("read NOTIFY_SOCKET: %q is neither a path nor an abstract name; unset it to run without a service manager", address)
	}
	watchdog, err := watchdogInterval(getenv)
	if err != nil {
		return nil, err
	}
	// A leading @ makes the net package use the abstract namespace.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("connect to NOTIFY_SOCKET: %w; unset it to run without a service manager", err)
	}
	return newSupervisor(&link{conn}, watchdog, log), nil
}

// watchdogInterval is how often the service manager wants to hear from us, 0 if
// it does not say or says it to another process.
func watchdogInterval(getenv func(string) string) (time.Duration, error) {
	text := getenv("WATCHDOG_USEC")
	if pid := getenv("WATCHDOG_PID"); text == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0, nil
	}
	const most = int64(1<<63-1) / int64(time.Microsecond)
	microseconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || microseconds < 1 || microseconds > most {
		return 0, fmt.Errorf("read WATCHDOG_USEC: %q is not a number of microseconds; unset it to run without a watchdog", text)
	}
	return time.Duration(microseconds) * time.Microsecond, nil
}

// patience is how long one message may take. A datagram waits only while the
// receiver's queue is full.
const patience = time.Second

// link is the socket of the service manager.
type link struct{ conn *net.UnixConn }

func (l *link) send(message string) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := l.conn.Write([]byte(message))
	return err
}

func (l *link) close() { l.conn.Close() }
