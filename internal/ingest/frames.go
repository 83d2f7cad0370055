package ingest

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
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
	deadline time.Time     // when the frame must be complete; zero between frames
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

// first returns the content of the first frame, which must be complete within that time, counted from now and not
// from its first byte, and fit the base buffer.
func (f *frames) first(within time.Duration) ([]byte, error) {
	f.deadline = time.Now().Add(within)
	limit := f.max
	f.max = min(limit, baseBuffer-wire.HeaderLen)
	defer func() { f.max = limit }()
	return f.next()
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
			f.deadline = time.Time{}
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
	if isPartial && f.deadline.IsZero() {
		f.deadline = time.Now().Add(f.timeout)
	}
	if err := f.conn.SetReadDeadline(f.deadline); err != nil {
		return io.EOF // closed by the daemon, which stops
	}
	n, err := f.conn.Read(f.buf[f.end:])
	f.end += n
	f.extendDeadline(f.rate.spend(n))
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

// extendDeadline adds time that the daemon has spent itself, not the client.
func (f *frames) extendDeadline(spent time.Duration) {
	if !f.deadline.IsZero() {
		f.deadline = f.deadline.Add(spent)
	}
}

// makeRoom moves the begun frame to the front, or into a larger buffer if it stands there
// already. It takes a larger buffer only once the base buffer is full of the frame, so a
// length alone costs nothing.
func (f *frames) makeRoom(need int) error {
	target := f.buf
	if f.start == 0 {
		asked := time.Now()
		if f.large = f.buffers.take(need, f.max+wire.HeaderLen, f.timeout); f.large == nil {
			return faultf(FaultNoSpace, "read frame: no room for its %d bytes among the buffers of others; "+
				"keep frames under %d bytes", need, baseBuffer)
		}
		target = f.large.Bytes()
		target = target[:min(len(target), need+baseBuffer)] // the rest fits the base buffer, see shrink
		f.extendDeadline(time.Since(asked))
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

// Reader reads a tracer's messages as a Server does, by the same code, for who wants to
// see them instead of counting them. One goroutine uses it.
type Reader struct{ frames *frames }

// NewReader reads a connection within the limits of the config, which are its own here.
func NewReader(conn net.Conn, config *Config) *Reader {
	own := newBuffers(int64(config.MaxBufferBytes), nil)
	return &Reader{newFrames(conn, config.MaxFrame, config.ReadTimeout, nil, own)}
}

// Hello reads the first message, which it returns whatever it is, if there was one.
func (r *Reader) Hello() (hello *wire.Hello, message []byte, err error) { return readHello(r.frames) }

// Next returns the next message, good until it is called again. io.EOF means that the
// tracer left between two frames; FaultOf tells any other error's reason.
func (r *Reader) Next() ([]byte, error) { return r.frames.next() }

// Begun is what was read of the frame that is not complete, good until the next call.
func (r *Reader) Partial() []byte { return r.frames.buf[r.frames.start:r.frames.end] }

// buffers bounds what the buffers of large frames take, of all connections together. A
// frame that fits the buffer every connection has needs none of it, so a tracer that
// keeps its frames under 64 KiB, as the Go client does, never meets another one here.
type buffers struct {
	pool    *memory.Pool
	waits   atomic.Uint64   // frames that had to wait
	stopped <-chan struct{} // closed when nothing is waited for any more
}

// baseBuffer is what a connection reads into unless one frame needs more.
const baseBuffer = 64 << 10

// bufferPause is how long a frame waits before it asks again. Those that have
// their room need only be read, so it is short.
const bufferPause = time.Millisecond

// spareBuffers is how many buffers are kept for the next large frames, while there are
// connections: who sends one mostly sends more.
const spareBuffers = 4

// newBuffers have so many bytes together, and wait for them until stopped is closed.
func newBuffers(bytes int64, stopped <-chan struct{}) *buffers {
	return &buffers{pool: memory.NewPool(bytes, spareBuffers), stopped: stopped}
}

// take returns a buffer of at least n bytes, waiting for as long as a frame may take; nil
// where there was no room until then. A frame takes all that it needs at once, so whoever
// has some can be completed. Where there is room it takes somewhat more, at most what the
// largest frame needs, so that the buffer fits the next frame too.
func (b *buffers) take(n, most int, within time.Duration) *memory.Buffer {
	rounded := (n + baseBuffer - 1) / baseBuffer * baseBuffer
	if taken := b.pool.Take(max(n, min(rounded, most))); taken != nil {
		return taken
	}
	if taken := b.pool.Take(n); taken != nil {
		return taken
	}
	b.waits.Add(1)
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		select {
		case <-time.After(bufferPause):
		case <-b.stopped:
			// Little is left in the sockets now, and nothing follows it.
			return b.pool.Insist(n)
		}
		if taken := b.pool.Take(n); taken != nil {
			return taken
		}
	}
	return nil
}

// throttle holds one connection to a number of bytes a second, by not reading:
// the tracer's socket fills up and its own buffer with it. A nil throttle lets
// everything through.
type throttle struct {
	rate   float64 // bytes a second
	credit float64 // may be negative: what was read beyond the rate
	last   time.Time
	lifted <-chan struct{} // when closed, nothing is put off any more
	delays *atomic.Uint64
}

func newThrottle(rate int, lifted <-chan struct{}, delays *atomic.Uint64) *throttle {
	if rate == 0 {
		return nil
	}
	// A second's worth may come at once.
	return &throttle{
		rate: float64(rate), credit: float64(rate), last: time.Now(), lifted: lifted,
		delays: delays,
	}
}

// spend records n bytes that were read, waits until the rate allows the next, and returns how long it waited.
func (t *throttle) spend(n int) (waited time.Duration) {
	if t == nil {
		return 0
	}
	now := time.Now()
	t.credit = min(t.rate, t.credit+now.Sub(t.last).Seconds()*t.rate) - float64(n)
	t.last = now
	if t.credit >= 0 {
		return 0
	}
	t.delays.Add(1)
	select {
	case <-time.After(time.Duration(-t.credit / t.rate * float64(time.Second))):
	case <-t.lifted:
	}
	return time.Since(now)
}
