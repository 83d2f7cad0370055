package ingest

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/unix"
)

// frames cuts what a connection reads into messages, in place. It belongs to
// the connection's goroutine.
type frames struct {
	conn     net.Conn
	base     []byte         // the buffer for nearly everything
	large    *memory.Buffer // nil but while a frame needs it
	buf      []byte         // the one in use
	start    int            // of what is not consumed yet
	end      int            // of what was read
	max      int
	timeout  time.Duration // to complete a frame once begun
	isTimed  bool          // a deadline is set
	isStale  bool          // that deadline was an earlier frame's
	isOthers bool          // the deadline is the caller's: leave it
	rate     *throttle     // nil: any
	buffers  *buffers      // what a larger buffer is taken from
}

func newFrames(conn net.Conn, maxFrame int, timeout time.Duration, rate *throttle, buffers *buffers) *frames {
	base := make([]byte, baseBuffer)
	return &frames{
		conn: conn, base: base, buf: base, max: maxFrame, timeout: timeout, rate: rate,
		buffers: buffers,
	}
}

// first returns the content of the first frame, which must be whole within that
// time, counted from now and not from its first byte, and fit the base buffer.
func (f *frames) first(within time.Duration) ([]byte, error) {
	if err := f.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, io.EOF // closed under us: the daemon stops
	}
	limit := f.max
	f.isOthers, f.max = true, min(limit, baseBuffer-wire.HeaderLen)
	message, err := f.next()
	f.isOthers, f.max = false, limit
	f.isTimed, f.isStale = true, true // so that the next wait takes this deadline away
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
			f.isStale = true // what follows is another frame with its own time
			return message, nil
		}
		if err := f.fill(need); err != nil {
			return nil, err
		}
	}
}

// fill reads more, after making room for need bytes from start on.
func (f *frames) fill(need int) error {
	isPartial := f.end > f.start
	if !isPartial {
		f.start, f.end = 0, 0
	} else if f.end == len(f.buf) {
		if err := f.makeRoom(need); err != nil {
			return err
		}
	}
	if err := f.setDeadline(isPartial); err != nil {
		return err
	}
	n, err := f.conn.Read(f.buf[f.end:])
	f.end += n
	if f.rate.spend(n) {
		f.isStale = true // the tracer has not spent that time, we have
	}
	switch {
	case n > 0 || err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded) && f.readNow():
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return faultf(FaultTooSlow, "read frame: not complete within %s", f.timeout)
	case isPartial && !errors.Is(err, net.ErrClosed):
		return faultf(FaultHalfFrame, "read frame: the tracer left after %d bytes of it", f.end-f.start)
	}
	// A reset between two frames loses nothing that was handed over.
	return io.EOF
}

// readNow reads what is there already, though the time is over: it may be the daemon that
// was paused meanwhile, and not the tracer. It waits for nothing.
func (f *frames) readNow() bool {
	conn, ok := f.conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	// fails where the socket is closed
	_ = raw.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), f.buf[f.end:]) })
	f.end += max(0, n)
	return n > 0
}

// setDeadline bounds the time of a frame that has begun. Between frames a tracer may be
// silent for as long as it likes.
func (f *frames) setDeadline(isPartial bool) error {
	if f.isOthers || isPartial == f.isTimed && !(isPartial && f.isStale) {
		return nil
	}
	f.isTimed, f.isStale = isPartial, false
	deadline := time.Time{}
	if isPartial {
		deadline = time.Now().Add(f.timeout)
	}
	if err := f.conn.SetReadDeadline(deadline); err != nil {
		return io.EOF // closed under us: the daemon stops
	}
	return nil
}

// makeRoom moves the begun frame to the front, or into a larger buffer if it stands there
// already. It takes a larger buffer only once the base buffer is full of the frame, so a
// length alone costs nothing.
func (f *frames) makeRoom(need int) error {
	target := f.buf
	if f.start == 0 {
		if f.large = f.buffers.take(need, f.max+wire.HeaderLen, f.timeout); f.large == nil {
			return faultf(FaultNoSpace, "read frame: no room for its %d bytes among the buffers of others; "+
				"keep frames under %d bytes", need, baseBuffer)
		}
		target = f.large.Bytes()
		f.isStale = true // the tracer has not spent the time of that wait
	}
	f.moveTo(target)
	return nil
}

// moveTo makes another buffer the connection's, with what is not consumed yet.
func (f *frames) moveTo(buf []byte) {
	f.end = copy(buf, f.buf[f.start:f.end])
	f.start, f.buf = 0, buf
}

// shrink goes back to the base buffer once a large frame is done with.
func (f *frames) shrink() {
	if f.large != nil && f.end-f.start <= len(f.base) {
		f.moveTo(f.base)
		f.release()
	}
}

// release gives a larger buffer back. Nothing reads its bytes any more.
func (f *frames) release() {
	f.buf = f.base
	if f.large != nil {
		f.large.Release()
		f.large = nil
	}
}

// putBack makes the last message the next one again.
func (f *frames) putBack(message []byte) { f.start -= wire.HeaderLen + len(message) }
