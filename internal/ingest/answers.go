package ingest

import (
	"time"

	"golang.org/x/sys/unix"
)

// awaitAnswers waits until a tracer that has nothing more to say has the answers that it is
// owed, unless it has left or the daemon stops.
func (c *conn) awaitAnswers() {
	answered, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answered)
		c.answering.Wait()
	}()
	go func() {
		defer close(left)
		c.awaitLeave()
	}()
	select {
	case <-answered:
	case <-left:
	case <-c.draining:
	}
	c.endAnswers()
	_ = c.socket.SetReadDeadline(time.Unix(1, 0)) // ends awaitLeave; fails only where that has ended
	<-left
}

// awaitLeave waits until the tracer has closed its socket, or shut both of its sides. The end of
// what it writes says nothing of that: it may listen on.
func (c *conn) awaitLeave() {
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) (hasLeft bool) { // fails where nobody waits any more
		socket := []unix.PollFd{{Fd: int32(fd)}}
		_, err := unix.Poll(socket, 0)
		return err == nil && socket[0].Revents != 0
	})
}

// endAnswers ends those who wait to answer a flush: there is nobody to tell any more.
func (c *conn) endAnswers() {
	c.end()
	c.answering.Wait()
}
