package ingest

import (
	"net"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

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
func (r *Reader) Begun() []byte { return r.frames.buf[r.frames.start:r.frames.end] }
