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
	maxFrame int            // maximum length of a frame
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
		conn: conn, base: base, buf: base, maxFrame: maxFrame, timeout: timeout, rate: rate,
		buffers: buffers,
	}
}

// first returns the content of the first frame, which must fit the base buffer. It returns an error if the
// frame is not complete after timeout, even if none of its bytes has arrived.
func (f *frameReader) first(timeout time.Duration) ([]byte, error) {
	f.deadline = time.Now().Add(timeout)
	return f.readFrame(min(f.maxFrame, baseBuffer-wire.HeaderLen))
}

// next returns the content of the next frame, which is valid until the next call. It returns io.EOF if
// the client has closed the connection between two frames.
func (f *frameReader) next() ([]byte, error) { return f.readFrame(f.maxFrame) }

// readFrame returns the content of the next frame, which is valid until the next call. It returns an error if the
// content is empty or longer than maxLength bytes. It returns io.EOF if the client has closed the connection after
// a whole frame.
func (f *frameReader) readFrame(maxLength int) ([]byte, error) {
	f.shrink() // the previous frame is not used any more
	if err := f.readUntil(wire.HeaderLen); err != nil {
		return nil, err
	}
	length := wire.FrameLength(f.buf[f.start:f.end])
	if length == 0 {
		return nil, faultf(FaultBadFrame, "read frame: the frame is empty")
	}
	if int64(length) > int64(maxLength) {
		return nil, faultf(FaultTooLarge, "read frame: its length of %d bytes exceeds the maximum of "+
			"%d", length, maxLength)
	}
	frameSize := wire.HeaderLen + int(length)
	if err := f.readUntil(frameSize); err != nil {
		return nil, err
	}
	content := f.buf[f.start+wire.HeaderLen : f.start+frameSize]
	f.start += frameSize
	f.deadline = time.Time{} // the next frame may begin at any time
	return content, nil
}

// readUntil reads until the buffer contains at least size unread bytes.
func (f *frameReader) readUntil(size int) error {
	for f.buffered() < size {
		if err := f.read(size); err != nil {
			return err
		}
	}
	return nil
}

// buffered returns the number of unread bytes in the buffer.
func (f *frameReader) buffered() int { return f.end - f.start }

// read reads once from the connection into the buffer, which contains the first bytes of a frame, or nothing. The
// frame has size bytes. After its first bytes, the rest must arrive within f.timeout.
func (f *frameReader) read(size int) error {
	isPartial := f.buffered() > 0
	if isPartial {
		if err := f.makeRoom(size); err != nil {
			return err
		}
		f.startTimeout()
	} else {
		f.start, f.end = 0, 0
	}
	if err := f.conn.SetReadDeadline(f.deadline); err != nil {
		return io.EOF // closed by a shutdown of the daemon
	}
	n, err := f.conn.Read(f.buf[f.end:])
	f.end += n
	waited := f.rate.waitAfterRead(n)
	f.extendDeadline(waited) // the client is not slow, the daemon limits its rate
	hasData := n > 0
	if hasData || err == nil {
		return nil // after data, the next read returns err again
	}
	return f.handleReadError(err, isPartial)
}

// startTimeout sets the deadline for the rest of the current frame, unless an earlier read has set it.
func (f *frameReader) startTimeout() {
	if f.deadline.IsZero() {
		f.deadline = time.Now().Add(f.timeout)
	}
}

// handleReadError returns the reason why the connection ends after a read that returned err and no data. isPartial
// reports whether a part of a frame was read before. After the deadline, handleReadError first tries to read without
// waiting, and returns nil if that succeeds: the data may have arrived in time while the daemon was suspended.
func (f *frameReader) handleReadError(err error, isPartial bool) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		hasData := f.readAvailable()
		if hasData {
			return nil
		}
		return faultf(FaultTooSlow, "read frame: not complete within %s", f.timeout)
	}
	isClosedByDaemon := errors.Is(err, net.ErrClosed)
	if isPartial && !isClosedByDaemon {
		return faultf(FaultIncompleteFrame, "read frame: the client closed the connection after %d bytes of the "+
			"frame", f.buffered())
	}
	return io.EOF // also for a reset, which between two frames loses no data
}

// readAvailable reads bytes that have already arrived, and reports whether there were any. It does not wait, because
// the file descriptor is non-blocking. It bypasses f.conn.Read, which reads nothing after the read deadline.
func (f *frameReader) readAvailable() bool {
	socket, isSocket := f.conn.(syscall.Conn)
	if !isSocket {
		return false
	}
	rawConn, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	readOnce := func(fd uintptr) { n, _ = unix.Read(int(fd), f.buf[f.end:]) } // n is -1 after an error
	_ = rawConn.Control(readOnce)                                             // keeps fd open; fails if it is closed
	hasRead := n > 0
	if hasRead {
		f.end += n
	}
	return hasRead
}

// extendDeadline moves the deadline of the current frame, if it has one, by a delay for which the daemon is
// responsible.
func (f *frameReader) extendDeadline(delay time.Duration) {
	if !f.deadline.IsZero() {
		f.deadline = f.deadline.Add(delay)
	}
}

// makeRoom makes room at the end of the buffer if the buffer is full. The unread bytes are the first bytes of a frame
// of frameSize bytes. makeRoom moves them to the start of the buffer, or to a larger buffer if they are already there.
func (f *frameReader) makeRoom(frameSize int) error {
	isFull := f.end == len(f.buf)
	if !isFull {
		return nil
	}
	isAtStart := f.start == 0
	if isAtStart {
		return f.grow(frameSize)
	}
	f.compact()
	return nil
}

// grow moves the first bytes of a frame of frameSize bytes to a larger buffer from f.buffers. It waits for a free
// buffer, and returns an error if none is free within the read timeout.
func (f *frameReader) grow(frameSize int) error {
	waitStart := time.Now()
	large := f.buffers.acquire(frameSize, f.maxFrame+wire.HeaderLen, f.timeout)
	if large == nil {
		return faultf(FaultNoSpace, "read frame: all buffers for frames of %d bytes are in use; send frames "+
			"below %d bytes", frameSize, baseBuffer)
	}
	f.extendDeadline(time.Since(waitStart))
	f.large = large
	// A read can also get bytes of the next frames. Limit them, so that shrink can move them to the base buffer.
	const maxNextBytes = baseBuffer
	usableSize := min(len(large.Bytes()), frameSize+maxNextBytes)
	f.moveTo(large.Bytes()[:usableSize])
	return nil
}

// compact moves the unread bytes to the start of the current buffer.
func (f *frameReader) compact() { f.moveTo(f.buf) }

// moveTo makes buf the current buffer, and copies the unread bytes to its start.
func (f *frameReader) moveTo(buf []byte) {
	f.end = copy(buf, f.buf[f.start:f.end])
	f.start, f.buf = 0, buf
}

// shrink replaces a large buffer by the base buffer if the unread bytes fit it.
func (f *frameReader) shrink() {
	if f.large != nil && f.buffered() <= len(f.base) {
		f.moveTo(f.base)
		f.releaseLarge()
	}
}

// releaseLarge releases the large buffer, if there is one, and discards the bytes in it.
func (f *frameReader) releaseLarge() {
	f.buf = f.base
	if f.large != nil {
		f.large.Release()
		f.large = nil
	}
}

// unread takes back the last message, so that the next read returns it again.
func (f *frameReader) unread(message []byte) { f.start -= wire.HeaderLen + len(message) }

// eachRemaining reads the connection to its end, and calls fn with each complete message. head is the first part of
// the message, and length is the length of the whole message. The rest of a long message is discarded, so that no
// large buffer is needed.
func (f *frameReader) eachRemaining(fn func(head []byte, length int)) {
	f.shrink() // releases the large buffer early if possible
	for {
		head, length, isComplete := f.drainFrame()
		if !isComplete {
			return
		}
		fn(head, length)
	}
}

// drainFrame reads the next frame to its end. It returns the length of its message, and the first part of the message,
// which is valid until the next read. isComplete is false if the connection ends before the end of the frame, or if the
// frame is empty, which the protocol forbids.
func (f *frameReader) drainFrame() (messageStart []byte, messageLength int, isComplete bool) {
	hasHeader := f.fillUntil(wire.HeaderLen)
	if !hasHeader {
		return nil, 0, false
	}
	messageLength = int(wire.FrameLength(f.buf[f.start:f.end]))
	if messageLength == 0 {
		return nil, 0, false
	}
	frameSize := wire.HeaderLen + messageLength
	maxStartSize := len(f.base) / 2 // the other half of the buffer is for reading the rest
	startSize := min(frameSize, maxStartSize)
	hasStart := f.fillUntil(startSize)
	if !hasStart {
		return nil, 0, false
	}
	keptSize, isComplete := f.drainRest(startSize, frameSize-startSize)
	if !isComplete {
		return nil, 0, false
	}
	messageStart = f.buf[f.start+wire.HeaderLen : f.start+startSize]
	f.start += startSize + keptSize // the end of the frame; the bytes between the two are discarded
	return messageStart, messageLength, true
}

// drainRest reads the last restSize bytes of a frame, whose first startSize bytes are in the buffer. It discards all of
// them but the last keptSize bytes. isComplete is false if the connection ends before the end of the frame.
func (f *frameReader) drainRest(startSize, restSize int) (keptSize int, isComplete bool) {
	missing := restSize
	for {
		received := f.buffered() - startSize
		if received >= missing { // the frame is complete; bytes of the next frames can follow
			return missing, true
		}
		missing -= received
		f.end -= received // the next read overwrites the received bytes
		n := f.fillOnce()
		if n == 0 {
			return 0, false
		}
	}
}

// fillUntil reads until the buffer contains at least size unread bytes. It returns false if the connection ends
// before that.
func (f *frameReader) fillUntil(size int) bool {
	for f.buffered() < size {
		n := f.fillOnce()
		if n == 0 {
			return false
		}
	}
	return true
}

// fillOnce reads once into the free space of the buffer. It returns the number of bytes, which is 0 at the end of the
// stream. After an error, nothing more can be read, so that it counts as the end of the stream.
func (f *frameReader) fillOnce() (n int) {
	if f.end == len(f.buf) {
		f.compact()
	}
	n, _ = f.conn.Read(f.buf[f.end:])
	f.end += n
	return n
}

// Reader reads the messages of a client with the same code as a Server, for programs that inspect
// messages instead of counting spans. It is used by one goroutine at a time.
type Reader struct{ frames *frameReader }

// NewReader returns a Reader that reads from conn. It rejects the same messages as a Server with config.
func NewReader(conn net.Conn, config *Config) *Reader {
	buffers := newLargeBuffers(int64(config.MaxBufferBytes), nil)
	return &Reader{newFrameReader(conn, config.MaxFrame, config.ReadTimeout, nil, buffers)}
}

// Hello reads the first message, which has to be a hello, and decodes it. If the message was read but is
// not a valid hello, Hello returns both the encoded message and an error.
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

// acquire returns a buffer of at least size bytes; size is at most maxSize. It prefers a larger one of up to maxSize
// bytes, which may also fit the next frames. If no buffer is available, it waits for one, and returns nil after timeout.
func (b *largeBuffers) acquire(size, maxSize int, timeout time.Duration) *memory.Buffer {
	preferredSize := min(roundUp(size, baseBuffer), maxSize)
	buffer := b.pool.Take(preferredSize)
	if buffer == nil {
		buffer = b.pool.Take(size)
	}
	if buffer != nil {
		return buffer
	}
	b.waits.Add(1)
	return b.waitForBuffer(size, timeout)
}

// roundUp returns the smallest multiple of unit that is not less than n.
func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// waitForBuffer waits until a buffer of at least size bytes is available, and returns nil after timeout. Once
// b.stopped is closed, it allocates a buffer even beyond the memory limit: clients can no longer send, so few buffers
// are needed.
func (b *largeBuffers) waitForBuffer(size int, timeout time.Duration) *memory.Buffer {
	deadline := time.Now().Add(timeout)
	for time.Now().Before(deadline) {
		select {
		case <-time.After(acquireInterval):
		case <-b.stopped:
			return b.pool.TakeRegardless(size)
		}
		if buffer := b.pool.Take(size); buffer != nil {
			return buffer
		}
	}
	return nil
}

// throttle limits the rate at which a connection is read, so that the client's socket buffer fills up. A
// nil throttle does nothing.
type throttle struct {
	bytesPerSecond float64
	credit         float64 // bytes that may be read; negative after reading too many
	lastRead       time.Time
	disabled       <-chan struct{} // if closed, there is no limit
	delays         *atomic.Uint64
}

// newThrottle returns a throttle that limits reads to bytesPerSecond, or nil, which means no limit, if that is 0.
// After disabled is closed, reads no longer wait. The counter delays is incremented for each read that had to wait.
func newThrottle(bytesPerSecond int, disabled <-chan struct{}, delays *atomic.Uint64) *throttle {
	if bytesPerSecond == 0 {
		return nil
	}
	return &throttle{
		bytesPerSecond: float64(bytesPerSecond),
		credit:         float64(bytesPerSecond), // bytes of one second
		lastRead:       time.Now(),
		disabled:       disabled,
		delays:         delays,
	}
}

// waitAfterRead waits, after a read of n bytes, until the rate allows the next read. It returns how long it has
// waited. A nil throttle never waits.
func (t *throttle) waitAfterRead(n int) (waited time.Duration) {
	if t == nil {
		return 0
	}
	now := time.Now()
	newCredit := now.Sub(t.lastRead).Seconds() * t.bytesPerSecond
	maxCredit := t.bytesPerSecond // bytes of one second
	t.credit = min(maxCredit, t.credit+newCredit) - float64(n)
	t.lastRead = now
	if t.credit >= 0 {
		return 0
	}
	t.delays.Add(1)
	secondsToWait := -t.credit / t.bytesPerSecond
	select {
	case <-time.After(time.Duration(secondsToWait * float64(time.Second))):
	case <-t.disabled:
	}
	return time.Since(now)
}
