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

// Fault is why a connection was closed on its tracer.
type Fault uint8

const (
	FaultBadFrame   Fault = iota // a frame without content
	FaultBadMessage              // a frame's content is not what the protocol says
	FaultTooLarge                // a frame over MaxFrame
	// a frame begun and not completed in time, or a tracer that does not read
	FaultTooSlow
	FaultNoHello            // no hello in time, or something else before it
	FaultVersion            // a version that is not spoken here
	FaultTooManyConnections // one connection too many
	// a frame over 64 KiB that waited in vain for room among the buffers of others
	FaultNoSpace
	FaultHalfFrame  // the tracer left within a frame
	FaultNotAllowed // a user that is not in AllowUIDs
	FaultBug        // a defect of ours, contained

	faults = int(FaultBug) + 1
)

var faultNames = [faults]string{
	"bad_frame", "bad_message", "too_large", "too_slow", "no_hello", "version",
	"too_many_connections", "no_space", "half_frame", "not_allowed", "bug",
}

// String is the reason's name in metrics and in the bye to the tracer.
func (f Fault) String() string { return faultNames[f] }

// fault is an error that closes a connection.
type fault struct {
	reason Fault
	err    error
}

func (f *fault) Error() string { return fmt.Sprintf("%s: %v", f.reason, f.err) }
func (f *fault) Unwrap() error { return f.err }

func faultf(reason Fault, format string, args ...any) error {
	return &fault{reason, fmt.Errorf(format, args...)}
}

// NewFault is an error that closes a connection for that reason.
func NewFault(reason Fault, err error) error { return &fault{reason, err} }

// ByeOf is what a tracer is told of an error that closes its connection, unless it has
// left already.
func ByeOf(err error) (bye wire.Bye, ok bool) {
	reason := FaultOf(err)
	bye = wire.Bye{Reason: reason.String(), Detail: err.Error()}
	if reason == FaultVersion {
		bye.Versions = []uint64{wire.Version}
	}
	return bye, reason != FaultHalfFrame
}

// badMessage is the fault of a message that is not what the protocol says, if there is one.
func badMessage(err error) error {
	if err == nil {
		return nil
	}
	return &fault{FaultBadMessage, err}
}

// FaultOf finds the reason in an error. An error without one is a defect of ours.
func FaultOf(err error) Fault {
	var f *fault
	if errors.As(err, &f) {
		return f.reason
	}
	return FaultBug
}

// faultInterval is the least time between two lines about the same reason.
const faultInterval = 10 * time.Second

// faultLog logs closed connections, at most one per reason and interval.
type faultLog struct{ logger *slog.Logger }

func newFaultLog(log *slog.Logger) faultLog {
	return faultLog{ratelog.New(log, faultInterval, "reason")}
}

// fault logs a connection that is closed for a reason, with attributes that identify it.
func (l *faultLog) fault(reason Fault, err error, of []any) {
	l.logger.Warn("connection closed", append(of, "reason", reason.String(), "error", err)...)
}

// contain makes a panic an error: it costs one connection and no other.
func contain(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = faultf(FaultBug, "serve connection: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}
