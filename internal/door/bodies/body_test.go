package bodies

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// TestRoomIsTakenForWhatComes: a length that is only claimed takes no room from
// others.
func TestRoomIsTakenForWhatComes(t *testing.T) {
	b := NewPool(25<<20, 64<<20)
	from := io.MultiReader(bytes.NewReader(make([]byte, 100)), readerFunc(func([]byte) (int, error) {
		if used := b.Held(); used > 2*TrustedLength {
			t.Errorf("%d bytes are taken for 100 that came", used)
		}
		return 0, errors.New("the tracer is gone")
	}))
	held, err := b.Read(from, b.maxBody)
	if err == nil {
		t.Error("a body that broke off was read")
	}
	held.Release()
	if used := b.Held(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestBodiesAreReadWhole: whatever was said of their length, and however they come,
// bodies are read to their end, or over to who forwards them without a byte lost.
func TestBodiesAreReadWhole(t *testing.T) {
	b := NewPool(5<<20, 16<<20)
	for _, size := range []int{0, 1, FirstBuffer - 1, FirstBuffer, FirstBuffer + 1, TrustedLength, 3<<20 + 7, 5<<20 - 1, 5 << 20, 5<<20 + 1, 6 << 20} {
		sent := make([]byte, size)
		for i := range sent {
			sent[i] = byte(i ^ i>>8 ^ i>>16)
		}
		for _, length := range []int64{-1, int64(size)} {
			from := iotest.HalfReader(bytes.NewReader(sent))
			held, err := b.Read(from, length)
			if fits := size <= 5<<20; fits != (err == nil) || !fits && !errors.Is(err, ErrNoRoom) {
				t.Errorf("%d bytes, announced as %d: %v", size, length, err)
			}
			head := held.NewReader()
			got, err := io.ReadAll(io.MultiReader(head, from))
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes, announced as %d: %d were forwarded: %v", size, length, len(got), err)
			}
			head.Close()
			head.Close() // which some do twice
			held.Release()
			if used := b.Held(); used != 0 {
				t.Fatalf("%d bytes, announced as %d: %d are still taken", size, length, used)
			}
		}
	}
}
