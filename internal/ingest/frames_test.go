package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// pieces is a connection that gives what it holds in pieces of random sizes.
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

// ample is more room than a test needs.
func ample() *buffers { return newBuffers(math.MaxInt64, nil) }

// FuzzFrames reads arbitrary bytes in arbitrary pieces, and expects the same
// messages as a reading in one piece, a bounded buffer, and an end.
func FuzzFrames(f *testing.F) {
	f.Add(uint64(1), raw(1, 2, 3))
	f.Add(uint64(2), append(raw(1), raw(2, 3)...))
	f.Add(uint64(3), []byte{0, 0, 0, 0})
	f.Add(uint64(4), []byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Add(uint64(5), raw(bytes.Repeat([]byte{7}, baseBuffer+1)...)[:baseBuffer])
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		const maxFrame = 100_000
		read := func(conn net.Conn) (messages [][]byte, err error) {
			f := newFrames(conn, maxFrame, time.Second, nil, ample())
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

// readWhole is what frames does, in one piece and by the book.
func readWhole(data []byte, maxFrame int) (messages [][]byte, err error) {
	for len(data) > 0 {
		if len(data) < 4 {
			return messages, &fault{FaultHalfFrame, io.ErrUnexpectedEOF}
		}
		length := int64(binary.BigEndian.Uint32(data))
		switch {
		case length == 0:
			return messages, &fault{FaultBadFrame, io.ErrUnexpectedEOF}
		case length > int64(maxFrame):
			return messages, &fault{FaultTooLarge, io.ErrUnexpectedEOF}
		case length > int64(len(data)-4):
			return messages, &fault{FaultHalfFrame, io.ErrUnexpectedEOF}
		}
		messages = append(messages, data[4:4+length])
		data = data[4+length:]
	}
	return messages, nil
}

// TestFramesInAnyPieces cuts the same bytes anywhere and expects the same
// messages, from a buffer that grows for a large one and comes back.
func TestFramesInAnyPieces(t *testing.T) {
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
		f := newFrames(&pieces{rnd: rnd, data: wire}, maxFrame, time.Second, nil, ample())
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
		if cut && FaultOf(err) != FaultHalfFrame || !cut && !errors.Is(err, io.EOF) {
			t.Fatalf("seed %d: ended with %v", seed, err)
		}
		if len(f.buf) != baseBuffer {
			t.Errorf("seed %d: the buffer stayed at %d bytes", seed, len(f.buf))
		}
	}
}
