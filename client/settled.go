package client

import (
	"errors"
	"io"
	"syscall"
)

// Only the tracers' books have the spans that a daemon holds when it is killed. So a
// connection counts the spans that it handed over, and those that the daemon said have had
// their outcome. The rest may be lost if the daemon leaves without a bye.

// settle notes that so many spans of the connection have had their outcome. It is the
// reader's.
func (l *connection) settle(spans uint64) {
	l.settled.Store(max(l.settled.Load(), spans))
}

// unconfirmed is how many spans of an ended connection the daemon has taken with it, at
// most: none where it left in order, or never says what becomes of spans.
func (l *connection) unconfirmed() uint64 {
	died := errors.Is(l.ending, io.EOF) || errors.Is(l.ending, io.ErrUnexpectedEOF) ||
		errors.Is(l.ending, syscall.ECONNRESET)
	if !died || !l.isSettling {
		return 0
	}
	return l.handed - min(l.handed, l.settled.Load())
}
