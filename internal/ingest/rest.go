package ingest

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// countRest reads what lies behind the message that ends a connection, be it a fault or a
// bye, and counts the spans of its frames as dropped: they were handed over, and nothing is
// known of their keys. From here on the tracer's writes fail, so that is no more than the
// socket holds, and nothing is waited for.
func (c *conn) countRest() {
	if err := contain(c.readRest); err != nil {
		c.log.fault(FaultBug, err, c.attributes())
	}
}

func (c *conn) readRest() error {
	_ = c.socket.CloseRead() // fails only where the tracer has left already
	_ = c.socket.SetReadDeadline(time.Time{})
	c.frames.rest(func(head []byte, length int) {
		kind, body, err := wire.Split(head)
		switch {
		case err != nil:
		case kind == wire.TypeSpans:
			c.config.Admit.Refuse(wire.CountSpans(body, length-len(head)))
		case kind == wire.TypeLost && len(head) == length:
			_ = c.countLost(body) // what is malformed here too is no further fault
		}
	})
	return nil
}

// rest goes through the frames up to the end of what was written, however long each is.
// visit is given the length of each message that is whole, and as many of its first bytes
// as half of the buffer holds.
func (f *frames) rest(visit func(head []byte, length int)) {
	f.shrink()
	for f.readTo(wire.HeaderLen) {
		length := int(wire.FrameLength(f.buf[f.start:f.end]))
		left, held := wire.HeaderLen+length, min(wire.HeaderLen+length, len(f.base)/2)
		if length == 0 || !f.readTo(held) {
			return
		}
		for f.end-f.start < left {
			left -= f.end - f.start - held
			f.end = f.start + held
			if !f.more() {
				return // half a frame was not handed over
			}
		}
		visit(f.buf[f.start+wire.HeaderLen:f.start+held], length)
		f.start += left
	}
}

// readTo reads until so many bytes are there.
func (f *frames) readTo(n int) bool {
	for f.end-f.start < n {
		if !f.more() {
			return false
		}
	}
	return true
}

// more reads once, behind what is there.
func (f *frames) more() bool {
	if f.end == len(f.buf) {
		f.moveTo(f.buf)
	}
	n, _ := f.conn.Read(f.buf[f.end:])
	f.end += n
	return n > 0
}
