package otlp

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// preface is the HTTP/2 connection preface.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// HTTP/2 frame types and flags that the tests write.
const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4

	flagEndHeaders = 4
)

func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	b = append(b, byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags)
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// appendField appends an HPACK literal header field.
func appendField(b []byte, name, value string) []byte {
	b = append(append(b, 0), hpackLength(len(name))...)
	b = append(append(b, name...), hpackLength(len(value))...)
	return append(b, value...)
}

// hpackLength returns an HPACK integer with a prefix of seven bits.
func hpackLength(n int) (b []byte) {
	if n < 127 {
		return []byte{byte(n)}
	}
	b, n = []byte{127}, n-127
	for ; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return append(b, byte(n))
}

// opened returns a HEADERS frame that opens a gRPC stream with a number of additional header fields.
func opened(stream uint32, fields int) []byte {
	var header []byte
	for _, field := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", signals[signalTraces].grpcPath},
		{":authority", "x"},
		{"content-type", mediaGRPC},
		{"te", "trailers"},
	} {
		header = appendField(header, field[0], field[1])
	}
	for i := range fields {
		header = appendField(header, fmt.Sprintf("x-%d", i), strings.Repeat("x", 10))
	}
	return appendFrame(nil, frameHeaders, flagEndHeaders, stream, header)
}

// speakFrames starts HTTP/2 on a connection, and discards all received data.
func speakFrames(c net.Conn) {
	_, _ = c.Write(appendFrame([]byte(preface), frameSettings, 0, 0, nil))
	go func() { _, _ = io.Copy(io.Discard, c) }()
}

// TestStreams_RapidReset opens and resets ten thousand streams. The receiver keeps no memory for them, and
// serves other clients during and after the attack.
func TestStreams_RapidReset(t *testing.T) {
	h := newHarness(t, nil)
	for range 4 {
		c := h.dial()
		speakFrames(c)
		go func() {
			for stream := uint32(1); stream < 5000; stream += 2 {
				frames := appendFrame(opened(stream, 0), frameData, 0, stream,
					framed(make([]byte, 1000), false)[:500])
				if _, err := c.Write(appendFrame(frames, frameReset, 0, stream,
					[]byte{0, 0, 0, 8})); err != nil {
					return // the server has closed the connection
				}
			}
			c.Close()
		}()
	}
	client := h.client(true)
	for i := range 50 {
		if a := postGRPC(t, client, framed(exported("shop", i*10, 1, 1), false)); a.grpc != "0" {
			t.Fatalf("answered %+v", a)
		}
	}
	eventually.True(t, "nothing is held", func() bool {
		return h.Stats().Connections == 1 && h.Stats().BufferedBytes == 0
	})
	h.stop()
	if h.rows["name 0"] != 50 {
		t.Errorf("counted %v", h.rows)
	}
}

// TestWindow_HoldsMaximumBody checks that the receive window is as large as the maximum body, up to
// the window that connectionBytes includes.
func TestWindow_HoldsMaximumBody(t *testing.T) {
	for _, test := range []struct{ maxBody, window int }{
		{bodies.FirstBuffer, 64 << 10},
		{100_000, 100_000},
		{1 << 20, 384 << 10},
	} {
		h := newHarness(t, func(c *Config, _ *aggregate.Config) { c.MaxBody = test.maxBody })
		c := h.dial()
		if _, err := c.Write(appendFrame([]byte(preface), frameSettings, flagNone,
			0, nil)); err != nil {
			t.Fatal(err)
		}
		const initialWindow, byDefault = 4, 1<<16 - 1 // default of the connection's window, before a WINDOW_UPDATE frame
		const least = 4 << 10                         // smallest increment that net/http announces
		stream, connection := 0, byDefault
		for stream == 0 || connection+least <= test.window {
			var head [9]byte
			if _, err := io.ReadFull(c, head[:]); err != nil {
				t.Fatalf("%v: the windows are %d and %d", err, stream, connection)
			}
			payload := make([]byte, int(head[1])<<8|int(head[2]))
			if _, err := io.ReadFull(c, payload); err != nil {
				t.Fatal(err)
			}
			switch head[3] {
			case frameSettings:
				for ; len(payload) >= 6; payload = payload[6:] {
					if binary.BigEndian.Uint16(payload) == initialWindow {
						stream = int(binary.BigEndian.Uint32(payload[2:]))
					}
				}
			case frameWindow:
				connection += int(binary.BigEndian.Uint32(payload))
			}
		}
		without := h.config
		without.MaxBody = bodies.FirstBuffer
		if charged := h.config.connectionBytes() - without.connectionBytes(); stream != test.window ||
			connection > test.window || charged != test.window-minWindow {
			t.Errorf("of %d bytes %d are sent ahead, and %d are charged", test.maxBody, stream, charged)
		}
	}
}

// TestStop_WaitsForRequestsWithoutConnection checks that Stop waits for requests on closed connections, since
// they use memory, and can publish spans, until they detect it.
func TestStop_WaitsForRequestsWithoutConnection(t *testing.T) {
	for range 10 {
		h := newHarness(t, nil)
		var conns []net.Conn
		for range 8 {
			c := h.dial()
			conns = append(conns, c)
			speakFrames(c)
			for stream := uint32(1); stream < 16; stream += 2 {
				if _, err := c.Write(appendFrame(opened(stream, 0), frameData, 0, stream,
					framed(make([]byte, 1000), false)[:500])); err != nil {
					t.Fatal(err)
				}
			}
		}
		eventually.True(t, "all requests have started", func() bool {
			return h.Stats().BufferedBytes >= 64*bodies.FirstBuffer
		})
		for _, c := range conns {
			c.Close()
		}
		h.stop() // stop checks that all memory is released
	}
}

// TestStop_WaitsForResponsesWithoutConnection checks that Stop waits for a response that net/http no longer
// tracks, and that the statistics include its spans.
func TestStop_WaitsForResponsesWithoutConnection(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	h := newHarness(t, func(c *Config, _ *aggregate.Config) {
		c.OnAck = func(uint64, uint64, uint64) {
			close(reached)
			<-release
		}
	})
	c := h.dial()
	speakFrames(c)
	message := framed(exported("shop", 0, 10, 1), false)
	if _, err := c.Write(appendFrame(opened(1, 0), frameData, 1, 1, message)); err != nil {
		t.Fatal(err)
	}
	<-reached
	c.Close()
	var isReleased atomic.Bool
	time.AfterFunc(200*time.Millisecond, func() {
		isReleased.Store(true)
		close(release)
	})
	h.stop()
	if !isReleased.Load() {
		t.Error("the stop did not wait for the answer")
	}
}
