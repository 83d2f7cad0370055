package client

import (
	"errors"
	"io"
	"syscall"
)

// What a daemon holds when it is killed is in no book but its tracers'. So a connection
// counts what it handed over and what the daemon said has had its outcome, and the rest is
// what may be lost where the daemon leaves without a bye.

// settle notes that so many spans of the connection have had their outcome. It is the
// reader's.
func (l *connection) settle(spans uint64) {
	l.settled.Store(max(l.settled.Load(), spans))
}

// unconfirmed is how many spans of an ended connection the daemon has taken with it, at
// most: none where it left in order, or never says what becomes of spans.
func (l *connection) unconfirmed() uint64 {
	died := errors.Is(l.ending, io.EOF) || errors.Is(l.ending, io.ErrUnexpectedEOF) || errors.Is(l.ending, syscall.ECONNRESET)
	if !died || !l.isSettling {
		return 0
	}
	return l.handed - min(l.handed, l.settled.Load())
}
