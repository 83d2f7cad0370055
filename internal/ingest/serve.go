package ingest

import (
	"errors"
	"io"

	"github.com/spanstatsd/spanstatsd/internal/socket"
)

// serve reads until the tracer or the daemon ends the connection.
func (c *conn) serve() {
	defer c.socket.Close()
	defer c.endAnswers()
	err, isDraining := contain(c.read), c.isDraining()
	isDone := err == nil || errors.Is(err, io.EOF)
	switch {
	case isDraining && (isDone || FaultOf(err) == FaultHalfFrame):
		c.bye(byeShutdown) // half a frame is where the daemon has cut it
	case !isDone:
		c.fail(err)
	}
	c.countRest()
	c.release()
	if isDone && c.reporting.Load() > 0 {
		c.awaitAnswers()
	}
}

// fail counts and logs why the connection ends, and tells its tracer unless that has left.
func (c *conn) fail(err error) {
	reason := FaultOf(err)
	c.counters.faults[reason].Add(1)
	c.log.fault(reason, err, c.attributes())
	if bye, ok := ByeOf(err); ok {
		c.bye(bye)
	}
}

// release gives back what the connection took of what all share, and its buffer, which is more
// than awaitAnswers takes.
func (c *conn) release() {
	c.frames.release()
	c.frames.base, c.frames.buf = nil, nil
	if c.publisher != nil {
		c.publisher.Close()
	}
}

// read reads until there is nothing more: io.EOF where the tracer just left.
func (c *conn) read() error {
	c.peer.Container = socket.ContainerOf(c.peer.PID)
	if err := c.hello(); err != nil {
		return err
	}
	for {
		message, err := c.frames.next()
		if err != nil {
			return err
		}
		c.counters.frames.Add(1)
		left, err := c.handle(message)
		if left || err != nil {
			return err
		}
	}
}
