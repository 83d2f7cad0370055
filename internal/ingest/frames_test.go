package ingest

import (
	"bytes"
	"errors"
	"io"
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
		f := newFrames(&pieces{rnd: rnd, data: wire}, maxFrame, time.Second, nil)
		for i, content := range want {
			got, err := f.next()
			if err != nil || !bytes.Equal(got, content) {
				t.Fatalf("seed %d: message %d has %d bytes, want %d; %v", seed, i, len(got), len(content), err)
			}
			if len(f.buf) > maxFrame+4 {
				t.Fatalf("seed %d: a buffer of %d bytes", seed, len(f.buf))
			}
		}
		_, err := f.next()
		if cut && faultOf(err) != FaultHalfFrame || !cut && !errors.Is(err, io.EOF) {
			t.Fatalf("seed %d: ended with %v", seed, err)
		}
		if len(f.buf) != baseBuffer {
			t.Errorf("seed %d: the buffer stayed at %d bytes", seed, len(f.buf))
		}
	}
}
