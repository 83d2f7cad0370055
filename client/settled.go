package client

import (
	"errors"
	"io"
	"syscall"
)

// A daemon that is killed takes with it what it holds. So a connection counts the spans that it
// handed over, and those that the daemon said have had their outcome. What became of the rest, if the
// daemon leaves without a bye, is a question to the next one.

// settle notes that so many spans of the connection have had their outcome. It is the
// reader's, and the sender's once that has ended.
func (l *connection) settle(spans uint64) {
	l.settled.Store(max(l.settled.Load(), spans))
}

// unsettled is how many spans were handed over and have had no outcome yet, where the daemon says when
// they have.
func (l *connection) unsettled() uint64 {
	if !l.says.Settled {
		return 0
	}
	settled := l.settled.Load()
	return max(l.handed.Load(), settled) - settled
}

// died reports whether the connection ended without a bye, and not by this side.
func (l *connection) died() bool {
	return errors.Is(l.ending, io.EOF) || errors.Is(l.ending, io.ErrUnexpectedEOF) ||
		errors.Is(l.ending, syscall.ECONNRESET)
}
