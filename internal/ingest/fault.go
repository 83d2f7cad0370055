package ingest

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/logging/ratelog"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Fault is the reason why the daemon has closed a connection.
type Fault uint8

const (
	FaultBadFrame           Fault = iota // empty frame
	FaultBadMessage                      // message that violates the protocol
	FaultTooLarge                        // frame over MaxFrame
	FaultTooSlow                         // incomplete frame after ReadTimeout, or client that does not read
	FaultNoHello                         // no hello within helloTimeout, or another message before it
	FaultVersion                         // unsupported protocol version
	FaultTooManyConnections              // connection over a limit
	FaultNoSpace                         // frame over 64 KiB that got no buffer within ReadTimeout
	FaultIncompleteFrame                 // client that closed the connection within a frame
	FaultNotAllowed                      // user that is not in AllowUIDs
	FaultBug                             // panic or other internal error

	faults = int(FaultBug) + 1
)

var faultNames = [faults]string{
	"bad_frame", "bad_message", "too_large", "too_slow", "no_hello", "version",
	"too_many_connections", "no_space", "half_frame", "not_allowed", "bug",
}

// String returns the name of the reason in metrics, and in the bye to the client.
func (f Fault) String() string { return faultNames[f] }

// fault is an error with the reason why it closes a connection.
type fault struct {
	reason Fault
	err    error
}

func (f *fault) Error() string { return fmt.Sprintf("%s: %v", f.reason, f.err) }
func (f *fault) Unwrap() error { return f.err }

func faultf(reason Fault, format string, args ...any) error {
	return &fault{reason, fmt.Errorf(format, args...)}
}

// NewFault returns an error that closes a connection for the given reason.
func NewFault(reason Fault, err error) error { return &fault{reason, err} }

// asBadMessage returns err with the reason FaultBadMessage, or nil if err is nil.
func asBadMessage(err error) error {
	if err == nil {
		return nil
	}
	return &fault{FaultBadMessage, err}
}

// FaultOf returns the reason in err, an error that closes a connection. It returns FaultBug if err contains no
// reason, because only internal errors are created without one.
func FaultOf(err error) Fault {
	var withReason *fault
	if errors.As(err, &withReason) {
		return withReason.reason
	}
	return FaultBug
}

// ByeOf returns the message that tells a client that the daemon closes the connection because of err. canBeSent is
// false if the client has closed the connection itself, in the middle of a frame.
func ByeOf(err error) (bye wire.Bye, canBeSent bool) {
	reason := FaultOf(err)
	bye = wire.Bye{Reason: reason.String(), Detail: err.Error()}
	if reason == FaultVersion {
		bye.Versions = []uint64{wire.Version}
	}
	isClosedByClient := reason == FaultIncompleteFrame
	return bye, !isClosedByClient
}

// faultLogInterval is the minimum interval between two log lines with the same reason.
const faultLogInterval = 10 * time.Second

// faultLog logs connections that the daemon closes, at most one per reason and interval.
type faultLog struct{ logger *slog.Logger }

func newFaultLog(log *slog.Logger) faultLog {
	return faultLog{ratelog.New(log, faultLogInterval, "reason")}
}

// logClosed logs that a connection is closed. connection contains the attributes that identify it.
func (l *faultLog) logClosed(reason Fault, err error, connection []any) {
	l.logger.Warn("connection closed", append(connection, "reason", reason.String(), "error", err)...)
}

// recoverPanic calls fn and returns its error. If fn panics, recoverPanic returns an error with the stack trace, so
// that a panic ends only one connection and not the daemon.
func recoverPanic(fn func() error) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = faultf(FaultBug, "serve connection: panic: %v\n%s", panicked, debug.Stack())
		}
	}()
	return fn()
}
