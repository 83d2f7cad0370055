package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// pieces is a connection from which data is read in pieces of random size.
type pieces struct {
	net.Conn
	rnd  *rand.Rand
	data []byte
}

func (p *pieces) SetReadDeadline(time.Time) error { return nil }

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	most := min(len(to), len(p.data))
	n := min(most, 1+p.rnd.IntN(1+p.rnd.IntN(most)))
	copy(to, p.data[:n])
	p.data = p.data[n:]
	return n, nil
}

// ample returns buffers with practically no limit.
func ample() *largeBuffers { return newLargeBuffers(math.MaxInt64, nil) }

// FuzzFrames reads arbitrary bytes in random pieces. It expects the same messages as reading at
// once, a bounded buffer, and an end.
func FuzzFrames(f *testing.F) {
	f.Add(uint64(1), raw(1, 2, 3))
	f.Add(uint64(2), append(raw(1), raw(2, 3)...))
	f.Add(uint64(3), []byte{0, 0, 0, 0})
	f.Add(uint64(4), []byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Add(uint64(5), raw(bytes.Repeat([]byte{7}, baseBuffer+1)...)[:baseBuffer])
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		const maxFrame = 100_000
		read := func(conn net.Conn) (messages [][]byte, err error) {
			f := newFrameReader(conn, maxFrame, time.Second, nil, ample())
			for {
				message, err := f.next()
				if err != nil {
					return messages, err
				}
				if len(f.buf) > maxFrame+4 {
					t.Fatalf("a buffer of %d bytes", len(f.buf))
				}
				messages = append(messages, bytes.Clone(message))
			}
		}
		got, gotErr := read(&pieces{rnd: rand.New(rand.NewPCG(seed, 1)), data: data})
		want, wantErr := readWhole(data, maxFrame)
		if len(got) != len(want) || errors.Is(gotErr, io.EOF) != (wantErr == nil) {
			t.Fatalf("%d messages and %v, want %d and %v", len(got), gotErr, len(want), wantErr)
		}
		if wantErr != nil && FaultOf(gotErr) != FaultOf(wantErr) {
			t.Fatalf("ended with %v, want %v", gotErr, wantErr)
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("message %d differs", i)
			}
		}
	})
}

// readWhole is a simple implementation of frameReader for data in memory.
func readWhole(data []byte, maxFrame int) (messages [][]byte, err error) {
	for len(data) > 0 {
		if len(data) < 4 {
			return messages, &fault{FaultIncompleteFrame, io.ErrUnexpectedEOF}
		}
		length := int64(binary.BigEndian.Uint32(data))
		switch {
		case length == 0:
			return messages, &fault{FaultBadFrame, io.ErrUnexpectedEOF}
		case length > int64(maxFrame):
			return messages, &fault{FaultTooLarge, io.ErrUnexpectedEOF}
		case length > int64(len(data)-4):
			return messages, &fault{FaultIncompleteFrame, io.ErrUnexpectedEOF}
		}
		messages = append(messages, data[4:4+length])
		data = data[4+length:]
	}
	return messages, nil
}

// TestFrames_RandomPieces reads frames in random pieces. The buffer must grow for large frames and
// shrink again.
func TestFrames_RandomPieces(t *testing.T) {
	const maxFrame = 300_000
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var wire []byte
		var want [][]byte
		for range 40 {
			size := 1 + rnd.IntN(400)
			switch rnd.IntN(10) {
			case 0:
				size = maxFrame - rnd.IntN(3)
			case 1:
				size = baseBuffer - 6 + rnd.IntN(12)
			}
			content := bytes.Repeat([]byte{byte(rnd.IntN(256))}, size)
			want = append(want, content)
			wire = append(wire, raw(content...)...)
		}
		cut := rnd.IntN(2) == 0
		if cut {
			wire = append(wire, 0, 0, 1)
		}
		f := newFrameReader(&pieces{rnd: rnd, data: wire}, maxFrame, time.Second, nil, ample())
		for i, content := range want {
			got, err := f.next()
			if err != nil || !bytes.Equal(got, content) {
				t.Fatalf("seed %d: message %d has %d bytes, want %d; %v", seed, i, len(got), len(content),
					err)
			}
			if len(f.buf) > maxFrame+4 {
				t.Fatalf("seed %d: a buffer of %d bytes", seed, len(f.buf))
			}
		}
		_, err := f.next()
		if cut && FaultOf(err) != FaultIncompleteFrame || !cut && !errors.Is(err, io.EOF) {
			t.Fatalf("seed %d: ended with %v", seed, err)
		}
		if len(f.buf) != baseBuffer {
			t.Errorf("seed %d: the buffer stayed at %d bytes", seed, len(f.buf))
		}
	}
}

// TestFrames_LargeWaitForSpace checks that a large frame waits while an incomplete frame of another
// connection has all the buffer memory.
func TestFrames_LargeWaitForSpace(t *testing.T) {
	large := raw(make([]byte, 200_000)...)
	for _, c := range []struct {
		name  string
		after func(hog *frameReader, over chan struct{})
		want  Fault // FaultBug: no fault
	}{
		{"released", func(hog *frameReader, _ chan struct{}) { hog.releaseLarge() }, FaultBug},
		{"never released", func(*frameReader, chan struct{}) {}, FaultNoSpace},
		{"the daemon stops", func(_ *frameReader, over chan struct{}) { close(over) }, FaultBug},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan struct{})
				s := newLargeBuffers(300_000, over)
				hog := newFrameReader(&pieces{rnd: rand.New(rand.NewPCG(1, 1)), data: large[:100_000]}, 1<<20,
					time.Second, nil, s)
				if _, err := hog.next(); FaultOf(err) != FaultIncompleteFrame {
					t.Fatal(err)
				}
				go func() {
					time.Sleep(time.Second / 2)
					c.after(hog, over)
				}()
				f := newFrameReader(&pieces{rnd: rand.New(rand.NewPCG(2, 2)), data: large}, 1<<20, time.Second,
					nil, s)
				message, err := f.next()
				if c.want == FaultBug && (err != nil || len(message) != 200_000) ||
					c.want != FaultBug && FaultOf(err) != c.want {
					t.Errorf("a message of %d bytes and %v", len(message), err)
				}
				if s.waits.Load() != 1 {
					t.Errorf("%d frames waited", s.waits.Load())
				}
				before := s.pool.Used()
				f.releaseLarge()
				if took := before - s.pool.Used(); err == nil && took < int64(len(large)) ||
					err != nil && took != 0 {
					t.Errorf("%d bytes were released", took)
				}
			})
		})
	}
}

// TestFrames_LargeBufferIsReused checks that a free buffer is reused for the next large frame,
// even if that is somewhat longer, and is freed after the last connection.
func TestFrames_LargeBufferIsReused(t *testing.T) {
	b := newLargeBuffers(1<<20, nil)
	first := b.acquire(2*baseBuffer+1, 1<<20, 0)
	bytes := first.Bytes()
	first.Release()
	if next := b.acquire(3*baseBuffer, 1<<20, 0); &next.Bytes()[0] != &bytes[0] {
		t.Error("the next frame has a separate buffer")
	}
	if most := 2*baseBuffer + 7; len(b.acquire(2*baseBuffer+1, most, 0).Bytes()) != most {
		t.Error("a buffer is longer than the largest frame")
	}
	h := start(t, nil)
	c := h.connect("web")
	frame := spans(4000, key(strings.Repeat("long", 20)))
	if len(frame) < 2*baseBuffer {
		t.Fatalf("a frame of %d bytes needs no large buffer", len(frame))
	}
	c.send(frame)
	c.settle()
	c.Close()
	eventually.True(t, "the connection has ended", func() bool { return len(h.Tracers()) == 0 })
	shorter := len(frame) - baseBuffer // a spare buffer would be longer
	spare := h.buffers.pool.Take(shorter)
	if spare == nil || len(spare.Bytes()) != shorter {
		t.Error("a spare buffer is kept without a connection")
	}
	spare.Release()
}

// TestFrames_SmallNeedNoSpace checks that small frames can be read while other connections have all
// the buffer memory.
func TestFrames_SmallNeedNoSpace(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) {
		c.MaxFrame, c.MaxBufferBytes, c.ReadTimeout = 100_000, 200_000, 200*time.Millisecond
		c.Block = true // full rings must not drop spans
	})
	for i := range 4 {
		c := h.connect(fmt.Sprint("hog", i))
		defer c.Close()
		c.send(raw(make([]byte, 100_000)...)[:80_000])
	}
	healthy := h.connect("healthy")
	for range 100 {
		healthy.send(spans(100, key("healthy")))
	}
	healthy.settle()
	eventually.True(t, "the hogs are cut off", func() bool { return h.buffers.pool.Used() == 0 })
	h.stop()
	if got := h.rows["healthy"]; got != 10_000 {
		t.Errorf("the healthy tracer was counted %d of 10000", got)
	}
}

// TestFrames_ReleaseLargeBuffers checks that no buffer is held after a connection ends, if a frame
// that does not fit the large buffer has followed a large one.
func TestFrames_ReleaseLargeBuffers(t *testing.T) {
	buffers := newLargeBuffers(8<<20, nil)
	buffers.pool.Take(256 << 10).Release() // a spare buffer, larger than the first frame needs
	writer, reader := net.Pipe()
	f := newFrameReader(reader, 1<<20, time.Minute, nil, buffers)
	var stream []byte
	for _, length := range []int{100 << 10, 80 << 10, 300 << 10, 10} {
		stream = append(binary.BigEndian.AppendUint32(stream, uint32(length)), make([]byte, length)...)
	}
	go func() {
		defer writer.Close()
		_, _ = writer.Write(stream) // fails only after the test
	}()
	for n := 0; ; n++ {
		if _, err := f.next(); err != nil {
			if n != 4 {
				t.Errorf("%d frames were read: %v", n, err)
			}
			break
		}
	}
	f.releaseLarge()
	if held := buffers.pool.Used(); held != 0 {
		t.Errorf("%d bytes are held after the end of the connection", held)
	}
}
