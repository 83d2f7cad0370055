package ingest

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// tap gives as much as is asked for of one frame after the other, or so much of it.
type tap struct {
	net.Conn
	frame []byte
	at    int
	most  int // bytes a read, 0 for as many as are asked for
}

func (c *tap) SetReadDeadline(time.Time) error { return nil }

func (c *tap) Read(to []byte) (n int, err error) {
	if c.most > 0 {
		to = to[:min(len(to), c.most)]
	}
	for len(to) > 0 {
		step := copy(to, c.frame[c.at:])
		c.at = (c.at + step) % len(c.frame)
		to, n = to[step:], n+step
	}
	return n, nil
}

// TestBusyConnectionIsLentABuffer, and gives it back when it is not busy any more, or ends;
// each of its frames comes whole all the while.
func TestBusyConnectionIsLentABuffer(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 300)
	for _, test := range []struct {
		name       string
		space      *space
		wide, lent int
	}{
		{"room", newSpace(1<<20, 1<<19, nil), wideBuffer, wideBuffer},
		{"half for large frames", newSpace(2*wideBuffer-1, 1000, nil), baseBuffer, 0},
		{"one for a large frame", newSpace(1<<20, 1<<20-wideBuffer+1, nil), baseBuffer, 0},
	} {
		conn := &tap{frame: raw(content...)}
		f := newFrames(conn, 1<<18, time.Second, nil, test.space)
		read := func(times int) {
			t.Helper()
			for range times {
				if message, err := f.next(); err != nil || !bytes.Equal(message, content) {
					t.Fatalf("%s: a frame of %d bytes, error %v", test.name, len(message), err)
				}
			}
		}
		const fill = baseBuffer / 3000
		read(fill * (wideAfter - 1))
		if len(f.buf) != baseBuffer || test.space.used.Load() != 0 {
			t.Errorf("%s: busy soon, %d bytes are lent", test.name, test.space.used.Load())
		}
		read(fill * wideAfter)
		if len(f.buf) != test.wide || test.space.used.Load() != int64(test.lent) || test.space.lent.Load() != int64(test.lent) {
			t.Errorf("%s: busy, a buffer of %d bytes and %d lent", test.name, len(f.buf), test.space.used.Load())
		}
		conn.most = 2000
		read(400)
		if len(f.buf) != baseBuffer || test.space.used.Load() != 0 || test.space.lent.Load() != 0 {
			t.Errorf("%s: quiet, a buffer of %d bytes and %d lent", test.name, len(f.buf), test.space.used.Load())
		}
		conn.most = 0
		read(fill * wideAfter * 3)
		f.release()
		if test.space.used.Load() != 0 || test.space.lent.Load() != 0 {
			t.Errorf("%s: at the end %d bytes are lent", test.name, test.space.used.Load())
		}
	}
}

// TestLargeFrameOfABusyConnection needs room beside what is lent, and gives back its own.
func TestLargeFrameOfABusyConnection(t *testing.T) {
	s := newSpace(1<<20, 1<<19, nil)
	small, large := raw(make([]byte, 999)...), raw(make([]byte, 300_000)...)
	data := append(bytes.Repeat(small, 20_000), large...)
	data = append(data, bytes.Repeat(small, 1000)...)
	f := newFrames(&once{data: data}, 1<<19, time.Second, nil, s)
	most, frames := int64(0), 0
	for ; ; frames++ {
		message, err := f.next()
		if err == io.EOF {
			break
		}
		if err != nil || len(message) != 999 && len(message) != 300_000 {
			t.Fatalf("frame %d has %d bytes, error %v", frames, len(message), err)
		}
		most = max(most, s.used.Load())
	}
	if want := int64(wideBuffer + len(large)); most != want || frames != 21_001 {
		t.Errorf("%d frames took %d bytes, want 21001 and %d", frames, most, want)
	}
	if f.release(); s.used.Load() != 0 || s.lent.Load() != 0 {
		t.Errorf("%d bytes are lent after all, %d in loans", s.used.Load(), s.lent.Load())
	}
}

// TestSilentConnectionGivesBackItsLoan, and one that speaks keeps it, however little of the
// time it does.
func TestSilentConnectionGivesBackItsLoan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		s := newSpace(1<<20, 1<<19, nil)
		f := newFrames(ours, 1<<18, time.Hour, nil, s)
		frames := 0
		go func() {
			for ; ; frames++ {
				if message, err := f.next(); err != nil || len(message) != 1020 {
					break
				}
			}
			f.release()
		}()
		frame := raw(make([]byte, 1020)...)
		send := func(bytesAtLeast int) {
			if _, err := theirs.Write(bytes.Repeat(frame, bytesAtLeast/len(frame)+1)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		busy := bytes.Repeat(frame, wideAfter*wideBuffer/len(frame))
		for range 2 {
			send(len(busy))
			if s.lent.Load() != wideBuffer {
				t.Fatalf("busy, and %d bytes are lent", s.lent.Load())
			}
			for range 20 {
				time.Sleep(loanTime * 2 / 3)
				send(2 * wideLittle)
			}
			if s.lent.Load() != wideBuffer {
				t.Errorf("it spoke, and %d bytes are lent", s.lent.Load())
			}
			time.Sleep(2*loanTime + 1)
			if synctest.Wait(); s.lent.Load() != 0 || s.used.Load() != 0 {
				t.Errorf("silent, and %d bytes stay lent", s.lent.Load())
			}
			time.Sleep(time.Minute) // which it may
			before := frames
			if send(0); frames != before+1 {
				t.Error("what came afterwards was not read")
			}
		}
	})
}

// once gives what it has.
type once struct {
	net.Conn
	data []byte
}

func (c *once) SetReadDeadline(time.Time) error { return nil }

func (c *once) Read(to []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(to, c.data)
	c.data = c.data[n:]
	return n, nil
}
