package ingest

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// baseBuffer is what a connection reads into unless one frame needs more.
const baseBuffer = 64 << 10

// frames cuts what a connection reads into messages, in place. It belongs to
// the connection's goroutine.
type frames struct {
	conn    net.Conn
	base    []byte // the buffer for nearly everything
	wide    []byte // the same while the connection is busy, or nil
	buf     []byte // one of them, or a larger one while a frame needs it
	busy    busy
	start   int // of what is not consumed yet
	end     int // of what was read
	max     int
	timeout time.Duration // to complete a frame once begun
	until   deadline      // what a read ends for
	rearm   bool          // that deadline was an earlier frame's
	spoke   bool          // something was read since the deadline was set
	hold    bool          // the deadline is the caller's: leave it
	pace    *throttle     // nil: any
	space   *space        // what a larger buffer is taken from
}

// deadline is what a read deadline is for.
type deadline uint8

const (
	endless deadline = iota // there is none
	ofFrame                 // the frame at start must be whole
	ofLoan                  // to see whether a connection with a wide buffer speaks
	lapsed                  // it must be set anew, or taken away
)

func newFrames(conn net.Conn, maxFrame int, timeout time.Duration, pace *throttle, space *space) *frames {
	base := make([]byte, baseBuffer)
	return &frames{conn: conn, base: base, buf: base, max: maxFrame, timeout: timeout, pace: pace, space: space}
}

// first returns the content of the first frame, which must be whole within that
// time, counted from now and not from its first byte, and fit the base buffer.
func (f *frames) first(within time.Duration) ([]byte, error) {
	if err := f.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, io.EOF // closed under us: the daemon stops
	}
	f.hold = true
	limit := f.max
	f.max = min(limit, baseBuffer-wire.HeaderLen)
	message, err := f.next()
	f.hold, f.max = false, limit
	f.until = lapsed // so that the next wait takes this deadline away
	return message, err
}

// next returns the content of the next frame. It is valid until the next call.
// io.EOF means that the tracer left between two frames.
func (f *frames) next() ([]byte, error) {
	f.shrink()
	for {
		need := wire.HeaderLen
		if f.end-f.start >= wire.HeaderLen {
			length := int64(wire.FrameLength(f.buf[f.start:f.end]))
			if length == 0 {
				return nil, faultf(FaultBadFrame, "read frame: a frame of no bytes")
			}
			if length > int64(f.max) {
				return nil, faultf(FaultTooLarge, "read frame: %d bytes announced, %d allowed", length, f.max)
			}
			need += int(length)
		}
		if need > wire.HeaderLen && f.end-f.start >= need {
			message := f.buf[f.start+wire.HeaderLen : f.start+need]
			f.start += need
			f.rearm = true // what follows is another frame with its own time
			return message, nil
		}
		if err := f.fill(need); err != nil {
			return nil, err
		}
	}
}

// peek returns the content of the next frame if all of it was read already. What next has
// returned stays valid, and what peek returns is not consumed before skip.
func (f *frames) peek() ([]byte, bool) {
	read := f.buf[f.start:f.end]
	if len(read) < wire.HeaderLen {
		return nil, false
	}
	length := int64(wire.FrameLength(read))
	if length == 0 || length > int64(f.max) || length > int64(len(read)-wire.HeaderLen) {
		return nil, false
	}
	return read[wire.HeaderLen : wire.HeaderLen+length], true
}

// skip consumes the frame that peek has returned.
func (f *frames) skip(message []byte) {
	f.start += wire.HeaderLen + len(message)
	f.rearm = true
}

// fill reads more, after making room for need bytes from start on.
func (f *frames) fill(need int) error {
	if f.busy.filled >= wideAfter && f.wide == nil && len(f.buf) == len(f.base) {
		f.widen()
	}
	partial := f.end > f.start
	if !partial {
		f.start, f.end = 0, 0
	} else if f.end == len(f.buf) {
		if err := f.makeRoom(need); err != nil {
			return err
		}
	}
	if err := f.setDeadline(partial); err != nil {
		return err
	}
	n, err := f.conn.Read(f.buf[f.end:])
	f.end += n
	f.busy.note(n, f.end == len(f.buf))
	if f.pace.spend(n) {
		f.rearm = true  // the tracer has not spent that time, we have
		f.busy = busy{} // reads are full because they come late
	}
	switch {
	case n > 0 || err == nil:
		f.spoke = true
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded) && f.until == ofLoan:
		f.endLoan()
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return faultf(FaultTooSlow, "read frame: not complete within %s", f.timeout)
	case partial && !errors.Is(err, net.ErrClosed):
		return faultf(FaultHalfFrame, "read frame: the tracer left after %d bytes of it", f.end-f.start)
	}
	// A reset between two frames loses nothing that was handed over.
	return io.EOF
}

// setDeadline bounds the time of a frame that has begun. Between frames a tracer may be
// silent for as long as it likes, but not keep a wide buffer for it.
func (f *frames) setDeadline(partial bool) error {
	if f.hold {
		return nil
	}
	until, within := endless, time.Duration(0)
	switch {
	case partial:
		until, within = ofFrame, f.timeout
	case f.wide != nil:
		until, within = ofLoan, loanTime
	}
	if until == f.until && !(partial && f.rearm) {
		return nil
	}
	f.until, f.rearm, f.spoke = until, false, false
	at := time.Time{}
	if within > 0 {
		at = time.Now().Add(within)
	}
	if err := f.conn.SetReadDeadline(at); err != nil {
		return io.EOF // closed under us: the daemon stops
	}
	return nil
}

// makeRoom moves the begun frame to the front, or into a larger buffer if it
// stands there already. That happens only once the base buffer is full of it, so
// a length alone costs nothing.
func (f *frames) makeRoom(need int) error {
	target := f.buf
	if f.start == 0 {
		if !f.space.take(need, f.timeout) {
			return faultf(FaultNoSpace, "read frame: no room for its %d bytes among the buffers of others; "+
				"keep frames under %d bytes or raise --max-buffer-bytes", need, baseBuffer)
		}
		target = make([]byte, need)
		f.rearm = true // the tracer has not spent the time of that wait
	}
	f.moveTo(target)
	return nil
}

// shrink goes back to the usual buffer once a large frame is done with, and to the base
// buffer once the connection is no longer busy or a large frame of another has no room.
func (f *frames) shrink() {
	if len(f.buf) == len(f.base) {
		return
	}
	held := f.end - f.start
	if large, usual := len(f.buf), f.usual(); large > len(usual) && held <= len(usual) {
		f.moveTo(usual)
		f.space.give(large)
	}
	if len(f.buf) == len(f.wide) && held <= len(f.base) && (f.busy.little >= wideUntil || f.space.isSought()) {
		f.narrow()
	}
}

// release gives back what is not the connection's own. It is not read from afterwards.
func (f *frames) release() {
	if large := len(f.buf); large > len(f.usual()) {
		f.space.give(large)
	}
	if f.wide != nil {
		f.space.takeBack(wideBuffer)
	}
	f.buf, f.wide = f.base, nil
}
