package bodies

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/iotest"
)

// TestBody_ContentLengthReservesNoMemory checks that a Content-Length reserves no memory.
func TestBody_ContentLengthReservesNoMemory(t *testing.T) {
	b := NewPool(25<<20, 64<<20)
	from := io.MultiReader(bytes.NewReader(make([]byte, 100)), readerFunc(func([]byte) (int, error) {
		if used := b.Used(); used > 2*FirstBuffer {
			t.Errorf("%d bytes are used for 100 received ones", used)
		}
		return 0, errors.New("the tracer has disconnected")
	}))
	held, err := b.Read(from, b.maxBody, nil)
	if err == nil {
		t.Error("a body that broke off was read")
	}
	held.Release()
	if used := b.Used(); used != 0 {
		t.Errorf("%d bytes are still used", used)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestBody_IsReadWhole checks that every byte of a body is read or left to its reader, with and without a
// Content-Length.
func TestBody_IsReadWhole(t *testing.T) {
	b := NewPool(5<<20, 16<<20)
	for _, size := range []int{
		0, 1, FirstBuffer - 1, FirstBuffer, FirstBuffer + 1, 1 << 20, 3<<20 + 7,
		5<<20 - 1, 5 << 20, 5<<20 + 1, 6 << 20,
	} {
		sent := make([]byte, size)
		for i := range sent {
			sent[i] = byte(i ^ i>>8 ^ i>>16)
		}
		for _, length := range []int64{-1, int64(size)} {
			from := iotest.HalfReader(bytes.NewReader(sent))
			held, err := b.Read(from, length, nil)
			if fits := size <= 5<<20; fits != (err == nil) || !fits && !errors.Is(err, ErrNoRoom) {
				t.Errorf("%d bytes, announced as %d: %v", size, length, err)
			}
			head := held.NewReader()
			got, err := io.ReadAll(io.MultiReader(head, from))
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes, announced as %d: %d were forwarded: %v", size, length, len(got), err)
			}
			head.Close()
			head.Close() // http.Transport can close it twice
			held.Release()
			if used := b.Used(); used != 0 {
				t.Fatalf("%d bytes, announced as %d: %d are still used", size, length, used)
			}
		}
	}
}

// TestMemory_HalfPerSender checks that one sender can use half of the memory, that other senders can use the rest, and
// that released memory can be used again.
func TestMemory_HalfPerSender(t *testing.T) {
	b := NewPool(FirstBuffer, 8*FirstBuffer)
	var one, other atomic.Int64
	var held []*Body
	read := func(of *atomic.Int64) error {
		body, err := b.Read(bytes.NewReader(make([]byte, FirstBuffer-1)), FirstBuffer-1, of)
		held = append(held, body)
		return err
	}
	for _, of := range []*atomic.Int64{&one, &other} {
		for n := range 4 {
			if err := read(of); err != nil {
				t.Errorf("body %d: %v", n+1, err)
			}
		}
		if err := read(of); !errors.Is(err, ErrNoRoom) {
			t.Errorf("one has more than half: %v", err)
		}
	}
	for _, body := range held {
		body.Release()
		body.Release()
	}
	if err := read(&one); err != nil || one.Load() != FirstBuffer || other.Load() != 0 ||
		b.Used() != FirstBuffer {
		t.Errorf("%v; they have %d and %d of %d bytes", err, one.Load(), other.Load(), b.Used())
	}
}
