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

// frameReader reads frames from a connection. Frames are slices of its buffer. It is used by the
// connection's goroutine only.
type frameReader struct {
	conn     net.Conn
	base     []byte         // buffer of baseBuffer bytes
	large    *memory.Buffer // buffer for a frame that does not fit base; nil if not needed
	buf      []byte         // current buffer: base or a part of large
	start    int            // start of the unread bytes in buf
	end      int            // end of the unread bytes in buf
	max      int            // maximum length of a frame
	timeout  time.Duration  // maximum time to complete a frame
	deadline time.Time      // deadline for the current frame; zero between frames
	rate     *throttle      // nil if unlimited
	buffers  *largeBuffers
}

func newFrameReader(
	conn net.Conn, maxFrame int, timeout time.Duration, rate *throttle, buffers *largeBuffers,
) *frameReader {
	base := make([]byte, baseBuffer)
	return &frameReader{
		conn: conn, base: base, buf: base, max: maxFrame, timeout: timeout, rate: rate,
		buffers: buffers,
	}
}

// first returns the content of the first frame. The frame must fit the base buffer, and must be complete
// within timeout from now, not from its first byte.
func (f *frameReader) first(timeout time.Duration) ([]byte, error) {
	f.deadline = time.Now().Add(timeout)
	maxFrame := f.max
	f.max = min(maxFrame, baseBuffer-wire.HeaderLen)
	defer func() { f.max = maxFrame }()
	return f.next()
}

// next returns the content of the next frame, which is valid until the next call. It returns io.EOF if
// the client has closed the connection between two frames.
func (f *frameReader) next() ([]byte, error) {
	f.shrink()
	for {
		need := wire.HeaderLen
		if f.buffered() >= wire.HeaderLen {
			length := int64(wire.FrameLength(f.buf[f.start:f.end]))
			if length == 0 {
				return nil, faultf(FaultBadFrame, "read frame: the frame is empty")
			}
			if length > int64(f.max) {
				return nil, faultf(FaultTooLarge, "read frame: its length of %d bytes exceeds the maximum of "+
					"%d", length, f.max)
			}
			need += int(length)
			if f.buffered() >= need {
				message := f.buf[f.start+wire.HeaderLen : f.start+need]
				f.start += need
				f.deadline = time.Time{}
				return message, nil
			}
		}
		if err := f.fill(need); err != nil {
			return nil, err
		}
	}
}

// buffered returns the number of unread bytes in the buffer.
func (f *frameReader) buffered() int { return f.end - f.start }

// fill reads more bytes into the buffer. If the buffer is full, it first makes room for a frame of need
// bytes.
func (f *frameReader) fill(need int) error {
	isPartial := f.buffered() > 0
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
		return io.EOF // closed by a shutdown of the daemon
	}
	n, err := f.conn.Read(f.buf[f.end:])
	f.end += n
	f.extendDeadline(f.rate.spend(n))
	if n > 0 || err == nil {
		return nil
	}
	return f.handleReadError(err, isPartial)
}

// handleReadError returns the fault for a read that has failed, or io.EOF. isPartial reports whether a part
// of a frame has been read before. At the deadline, it first tries to read what the client has already
// written, and returns nil if that succeeds: the daemon itself may have been paused.
func (f *frameReader) handleReadError(err error, isPartial bool) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if f.readAvailable() {
			return nil
		}
		return faultf(FaultTooSlow, "read frame: not complete within %s", f.timeout)
	}
	if isPartial && !errors.Is(err, net.ErrClosed) {
		return faultf(FaultHalfFrame, "read frame: the client closed the connection after %d bytes of the "+
			"frame", f.buffered())
	}
	return io.EOF // also for a reset, which between two frames loses no data
}

// readAvailable reads bytes that the client has already written, without waiting, and reports whether
// there are any. It bypasses net.Conn, whose deadline has passed.
func (f *frameReader) readAvailable() bool {
	conn, ok := f.conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	// Control fails only if the socket is closed.
	_ = raw.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), f.buf[f.end:]) })
	f.end += max(0, n)
	return n > 0
}

// extendDeadline adds a delay that the daemon has caused to the deadline.
func (f *frameReader) extendDeadline(delay time.Duration) {
	if !f.deadline.IsZero() {
		f.deadline = f.deadline.Add(delay)
	}
}

// makeRoom moves a partial frame to the start of the buffer. If it is already there, makeRoom moves it to
// a larger buffer, so a client must send 64 KiB of a frame before it gets memory for the rest.
func (f *frameReader) makeRoom(need int) error {
	target := f.buf
	if f.start == 0 {
		waitStart := time.Now()
		if f.large = f.buffers.acquire(need, f.max+wire.HeaderLen, f.timeout); f.large == nil {
			return faultf(FaultNoSpace, "read frame: all buffers for frames of %d bytes are in use; send frames "+
				"below %d bytes", need, baseBuffer)
		}
		target = f.large.Bytes()
		target = target[:min(len(target), need+baseBuffer)] // bytes after the frame must fit base, see shrink
		f.extendDeadline(time.Since(waitStart))
	}
	f.moveTo(target)
	return nil
}

// moveTo replaces the buffer by buf, and copies the unread bytes to its start.
func (f *frameReader) moveTo(buf []byte) {
	f.end = copy(buf, f.buf[f.start:f.end])
	f.start, f.buf = 0, buf
}

// shrink returns to the base buffer if the unread bytes fit it.
func (f *frameReader) shrink() {
	if f.large != nil && f.buffered() <= len(f.base) {
		f.moveTo(f.base)
		f.releaseLarge()
	}
}

// releaseLarge releases the large buffer, if there is one.
func (f *frameReader) releaseLarge() {
	f.buf = f.base
	if f.large != nil {
		f.large.Release()
		f.large = nil
	}
}

// unread makes the last message the next one again.
func (f *frameReader) unread(message []byte) { f.start -= wire.HeaderLen + len(message) }

// eachRemaining calls fn for each complete frame up to the end of the stream, without limits on length
// and time. head is the start of the message, at most half of the base buffer; length is the length of
// the message.
func (f *frameReader) eachRemaining(fn func(head []byte, length int)) {
	f.shrink()
	for f.fillTo(wire.HeaderLen) {
		length := int(wire.FrameLength(f.buf[f.start:f.end]))
		needed := wire.HeaderLen + length // buffered bytes that complete the frame
		headEnd := min(needed, len(f.base)/2)
		if length == 0 || !f.fillTo(headEnd) {
			return
		}
		// Keep the head, and overwrite the bytes after it until the frame is complete.
		for f.buffered() < needed {
			needed -= f.buffered() - headEnd
			f.end = f.start + headEnd
			if !f.readMore() {
				return
			}
		}
		fn(f.buf[f.start+wire.HeaderLen:f.start+headEnd], length)
		f.start += needed
	}
}

// fillTo reads until the buffer contains at least n unread bytes, and reports whether it does.
func (f *frameReader) fillTo(n int) bool {
	for f.buffered() < n {
		if !f.readMore() {
			return false
		}
	}
	return true
}

// readMore reads once, and reports whether it has read any bytes.
func (f *frameReader) readMore() bool {
	if f.end == len(f.buf) {
		f.moveTo(f.buf)
	}
	n, _ := f.conn.Read(f.buf[f.end:])
	f.end += n
	return n > 0
}

// Reader reads the messages of a client with the same code as a Server, for programs that inspect
// messages instead of counting spans. It is used by one goroutine at a time.
type Reader struct{ frames *frameReader }

// NewReader returns a Reader with the limits in config.
func NewReader(conn net.Conn, config *Config) *Reader {
	buffers := newLargeBuffers(int64(config.MaxBufferBytes), nil)
	return &Reader{newFrameReader(conn, config.MaxFrame, config.ReadTimeout, nil, buffers)}
}

// Hello reads the first message and decodes it as a hello. It also returns the message if it is not a
// valid hello.
func (r *Reader) Hello() (hello *wire.Hello, message []byte, err error) { return readHello(r.frames) }

// Next returns the next message, which is valid until the next call. It returns io.EOF if the client has
// closed the connection between two frames. FaultOf returns the reason of other errors.
func (r *Reader) Next() ([]byte, error) { return r.frames.next() }

// Partial returns the bytes of an incomplete frame, which are valid until the next call.
func (r *Reader) Partial() []byte { return r.frames.buf[r.frames.start:r.frames.end] }

// baseBuffer is the size of the buffer that every connection has.
const baseBuffer = 64 << 10

// largeBuffers limits the total size of the buffers for frames that are larger than baseBuffer. Smaller
// frames, such as those of the Go client, don't depend on it.
type largeBuffers struct {
	pool    *memory.Pool
	waits   atomic.Uint64   // frames that had to wait
	stopped <-chan struct{} // if closed, acquire no longer waits
}

// acquireInterval is the interval between attempts to get a buffer. It is short, because the frames that
// hold buffers are usually read soon.
const acquireInterval = time.Millisecond

// maxSpareBuffers is the number of free buffers that are kept for the next large frames, since clients
// that send one usually send more.
const maxSpareBuffers = 4

func newLargeBuffers(maxBytes int64, stopped <-chan struct{}) *largeBuffers {
	return &largeBuffers{pool: memory.NewPool(maxBytes, maxSpareBuffers), stopped: stopped}
}

// acquire returns a buffer of at least n bytes. If none is available it waits, and returns nil after
// timeout. If possible, the buffer is larger than n, up to maxSize, so that it fits the next frame too.
// A frame gets its whole buffer at once, so two frames can't block each other.
func (b *largeBuffers) acquire(n, maxSize int, timeout time.Duration) *memory.Buffer {
	rounded := (n + baseBuffer - 1) / baseBuffer * baseBuffer
	if buffer := b.pool.Take(max(n, min(rounded, maxSize))); buffer != nil {
		return buffer
	}
	if buffer := b.pool.Take(n); buffer != nil {
		return buffer
	}
	b.waits.Add(1)
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); {
		select {
		case <-time.After(acquireInterval):
		case <-b.stopped:
			// Only data in socket buffers is left to read, so the limit is not needed.
			return b.pool.TakeRegardless(n)
		}
		if buffer := b.pool.Take(n); buffer != nil {
			return buffer
		}
	}
	return nil
}

// throttle limits the rate at which a connection is read, so that the client's socket buffer fills up. A
// nil throttle does nothing.
type throttle struct {
	rate     float64 // bytes per second
	credit   float64 // bytes that may be read; negative after reading too many
	last     time.Time
	disabled <-chan struct{} // if closed, there is no limit
	delays   *atomic.Uint64
}

// newThrottle returns a throttle that allows rate bytes per second, and bursts of one second. It returns
// nil if rate is 0.
func newThrottle(rate int, disabled <-chan struct{}, delays *atomic.Uint64) *throttle {
	if rate == 0 {
		return nil
	}
	return &throttle{
		rate: float64(rate), credit: float64(rate), last: time.Now(), disabled: disabled,
		delays: delays,
	}
}

// spend records that n bytes have been read, and waits until more may be read. It returns the time that
// it has waited.
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
	case <-t.disabled:
	}
	return time.Since(now)
}
