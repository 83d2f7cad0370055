package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	daemonspan "github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// readSome reads the beginning of a response.
func readSome(conn net.Conn) error {
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err := io.ReadFull(conn, make([]byte, 12))
	return err
}

func newNames() []string {
	names := make([]string, 40)
	for i := range names {
		names[i] = anyOf([]string{
			fmt.Sprint("GET /users/", rand.Uint64()), fmt.Sprintf("GET /%x/y", randomBytes(16)),
			strings.Repeat("n", 1+rand.IntN(6000)), fmt.Sprintf("\xff\xfe%x", rand.Uint64()),
			fmt.Sprintf("SELECT * FROM t%d WHERE x = '%d'", rand.Uint64(), rand.Uint64()),
		})
	}
	return names
}

func newKey() *daemonspan.Key {
	return &daemonspan.Key{
		Service: fmt.Sprint("hostile-", rand.Uint64()), Operation: fmt.Sprint("op-", rand.Uint64()),
		Resource: newNames()[0], PeerTags: []string{fmt.Sprint("peer.hostname:", rand.Uint64())},
		HTTPStatus: rand.Uint32N(1000),
	}
}

func hello() []byte {
	return wire.AppendHello(nil, &wire.Hello{
		Version: wire.Version, Client: "hostile", Settled: true,
		Origin: daemonspan.Origin{Service: "hostile", Env: "hostile"},
	})
}

// endSpans ends the spans message that follows the hello.
func endSpans(frames []byte, count int) []byte {
	wire.EndSpans(frames, len(hello()), count)
	return frames
}

// defineKeys defines and uses keys until ctx is done or the daemon's memory for keys is exhausted.
func defineKeys(ctx context.Context, t *target) error {
	return write(ctx, t.Spans, hello(), func(conn net.Conn) error {
		for number := uint32(0); number < 4000 && ctx.Err() == nil; number += 20 {
			frames := wire.BeginDefine(nil)
			for i := range uint32(20) {
				frames = wire.AppendDefinition(frames, number+i, wire.AppendKey(nil, newKey()))
			}
			wire.EndDefine(frames, 0, 20)
			start := len(frames)
			frames = wire.BeginSpans(frames)
			for i := range uint32(20) {
				frames = wire.AppendNumbered(frames, number+i, 1000, time.Now().UnixNano(), 0, 1)
			}
			wire.EndSpans(frames, start, 20)
			if _, err := conn.Write(frames); err != nil {
				return err
			}
			pause(ctx, 20*time.Millisecond)
		}
		return nil
	})
}

func sendNewNamesNative(ctx context.Context, t *target) error {
	c, err := client.Open(client.Config{
		Socket: t.Spans, MaxAge: 20 * time.Millisecond,
		Origin: client.Origin{Service: "hostile", Env: "hostile"},
	})
	if err != nil {
		return err
	}
	for range 20 {
		batch := make([]client.Snapshot, 20)
		for i := range batch {
			batch[i] = client.Snapshot{
				Key: *newKey(), End: time.Now(), Duration: time.Duration(rand.Int64()),
				Weight: rand.Float64() * 5,
			}
		}
		c.Publish(batch)
		pause(ctx, 20*time.Millisecond)
	}
	return c.Close(ctx)
}

func sendNewNamesTraces(ctx context.Context, t *target) error {
	s := newSpans("hostile", newNames(), 40)
	return write(ctx, anyOf(t.tracers()), postRequest("/v0.4/traces", msgpackType, s.v04()), readSome)
}

func sendNewNamesOTLP(ctx context.Context, t *target) error {
	s := newSpans("hostile", newNames(), 40)
	return write(ctx, anyOf(t.sdks()), postRequest("/v1/traces", protobufType, s.protobuf()), readSome)
}

func sendNewOrigin(ctx context.Context, t *target) error {
	s := newSpans(fmt.Sprint("hostile-", rand.Uint32()), resources, 2)
	if rand.IntN(2) == 0 {
		return write(ctx, t.APM, postRequest("/v0.5/traces", msgpackType, s.v05()), readSome)
	}
	return write(ctx, t.OTLP, postRequest("/v1/traces", protobufType, s.protobuf()), readSome)
}

func closeEarly(ctx context.Context, t *target) error {
	s := newSpans("hostile", resources, 10)
	address, request := t.OTLPAddr, postRequest("/v1/traces", protobufType, s.protobuf())
	if rand.IntN(2) == 0 {
		address, request = t.APMAddr, postRequest("/v0.7/traces", msgpackType, s.v07())
	}
	return write(ctx, address, request, func(net.Conn) error {
		pause(ctx, time.Duration(rand.IntN(3000))*time.Microsecond)
		return nil
	})
}

func useUndefinedKey(ctx context.Context, t *target) error {
	frames := wire.BeginSpans(hello())
	frames = wire.AppendNumbered(frames, rand.Uint32N(5000), 1, time.Now().UnixNano(), 0, 1)
	return write(ctx, t.Spans, endSpans(frames, 1), readAll)
}

func sendCorruptFrames(ctx context.Context, t *target) error {
	frames := wire.AppendWhole(wire.BeginSpans(hello()), wire.AppendKey(nil, newKey()), 1, 1, 0, 1)
	endSpans(frames, 1)
	for range 3 {
		frames[rand.IntN(len(frames))] ^= byte(1 << rand.IntN(8))
	}
	return write(ctx, t.Spans, frames, readAll)
}

func sendPartialFrame(ctx context.Context, t *target) error {
	return write(ctx, t.Spans, append(hello(), 0, 0xf, 0xff, 0xff, 0x92, 5), hold(ctx))
}

func sendOddWeights(ctx context.Context, t *target) error {
	frames, key := wire.BeginSpans(hello()), wire.AppendKey(nil, newKey())
	for _, weight := range []float64{1 << 32, 0.001, math.SmallestNonzeroFloat64} {
		frames = wire.AppendWhole(frames, key, math.MaxUint64, math.MinInt64, daemonspan.Error, weight)
	}
	return write(ctx, t.Spans, endSpans(frames, 3), readAll)
}

func flushWithoutReading(ctx context.Context, t *target) error {
	frames := hello()
	for id := range uint64(200) {
		frames = wire.AppendFlush(frames, &wire.Flush{ID: id})
	}
	return write(ctx, t.Spans, frames, nil)
}

func sendAndClose(ctx context.Context, t *target) error {
	frames, key := wire.BeginSpans(hello()), wire.AppendKey(nil, newKey())
	for range 50 {
		end := time.Now().UnixNano() + rand.Int64N(1e12) - 5e11
		frames = wire.AppendWhole(frames, key, rand.Uint64(), end, 0, 1)
	}
	return write(ctx, t.Spans, endSpans(frames, 50), nil)
}
