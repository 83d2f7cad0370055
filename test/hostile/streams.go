package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Shapes that consist of HTTP/2 frames, of native protocol messages, or of several requests on a
// connection.

// frame returns an HTTP/2 frame.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))[1:]
	b = append(b, kind, flags)
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// floodFrames writes frames that cost the sender little, and reads no response.
func floodFrames(ctx context.Context, t *target) error {
	// A HEADERS frame with a method, without END_HEADERS.
	partial := frame(1, 0, 1, append([]byte{0x40, 7}, ":method\x04POST"...))
	floods := [][2][]byte{
		{nil, frame(6, 0, 0, make([]byte, 8))},                // PING
		{nil, frame(4, 0, 0, nil)},                            // SETTINGS
		{partial, frame(9, 0, 1, nil)},                        // CONTINUATION
		{partial, frame(9, 0, 1, bytes.Repeat([]byte{0}, 9))}, // malformed CONTINUATION
		{nil, frame(2, 0, 1, []byte{0, 0, 0, 0, 1})},          // PRIORITY
		{nil, frame(8, 0, 0, []byte{0, 0, 0, 1})},             // WINDOW_UPDATE by one byte
		{nil, frame(3, 0, 1, []byte{0, 0, 0, 8})},             // RST_STREAM of an idle stream
	}
	f := floods[rand.IntN(len(floods))]
	all := append([]byte(preface), frame(4, 0, 0, nil)...)
	all = append(append(all, f[0]...), bytes.Repeat(f[1], 5000)...)
	return write(ctx, anyOf(t.sdks()), all, hold(ctx))
}

// pipeline sends many requests without waiting, and reads no response.
func pipeline(ctx context.Context, t *target) error {
	s := newSpans("hostile", resources, 4)
	address, request := anyOf(t.sdks()), postRequest("/v1/traces", protobufType, s.protobuf())
	if rand.IntN(2) == 0 {
		address, request = anyOf(t.tracers()), postRequest("/v0.4/traces", msgpackType, s.v04())
	}
	return write(ctx, address, bytes.Repeat(request, 50), hold(ctx))
}

// expectAndStall sends a header with Expect: 100-continue or a chunked encoding, and then a few bytes
// at a time.
func expectAndStall(ctx context.Context, t *target) error {
	header := anyOf([]string{"Expect: 100-continue\r\n", "Transfer-Encoding: chunked\r\n"})
	path, media, address := "/v1/traces", protobufType, anyOf(t.sdks())
	if rand.IntN(2) == 0 {
		path, media, address = "/v0.5/traces", msgpackType, anyOf(t.tracers())
	}
	partial := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: daemon\r\nContent-Type: %s\r\n%s%s: 1\r\n\r\n",
		path, media, header, hostileHeader)
	return write(ctx, address, partial, func(conn net.Conn) error {
		for range 20 {
			if _, err := conn.Write([]byte("1\r\nx\r\n")); err != nil {
				return err
			}
			pause(ctx, 200*time.Millisecond)
		}
		return nil
	})
}

// sendEmptyTraces sends many empty lists, or spans with many tags.
func sendEmptyTraces(ctx context.Context, t *target) error {
	p := newPacker()
	if rand.IntN(2) == 0 {
		p.list(100_000)
		p.Write(bytes.Repeat([]byte{0x90}, 100_000))
	} else {
		p.list(1)
		p.list(1)
		p.dict(2)
		p.put("service", "hostile", "meta")
		p.dict(5000)
		for i := range 5000 {
			p.put(fmt.Sprint("tag", i), "x")
		}
	}
	return write(ctx, anyOf(t.tracers()), postRequest("/v0.4/traces", msgpackType, p.Bytes()), readAll)
}

// sendAfterBye sends messages after a bye, repeats the hello, reports invented losses, or sends spans
// before the hello.
func sendAfterBye(ctx context.Context, t *target) error {
	spans := wire.BeginSpans(nil)
	spans = wire.AppendWhole(spans, wire.AppendKey(nil, newKey()), 1, time.Now().UnixNano(), 0, 1)
	wire.EndSpans(spans, 0, 1)
	frames := hello()
	switch rand.IntN(4) {
	case 0:
		frames = append(wire.AppendBye(frames, &wire.Bye{Reason: "done"}), bytes.Repeat(spans, 20)...)
	case 1:
		frames = append(append(frames, hello()...), spans...)
	case 2:
		for range 100 {
			frames = wire.AppendLost(frames, wire.Lost{fmt.Sprint(rand.Uint64()): wire.MaxLostSpans})
		}
	default:
		frames = append(spans, frames...)
	}
	return write(ctx, t.Spans, frames, readAll)
}
