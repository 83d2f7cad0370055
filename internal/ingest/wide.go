package ingest

import "time"

// A connection that fills its buffer with each read has more waiting in its socket than
// the buffer holds, and its tracer waits for room there. The two then take turns in small
// steps, of which each wakes a thread and puts another to sleep. So it is lent a larger
// buffer, of what large frames leave free: the daemon's 328 ns a span on adversarial
// became 290. With 128 KiB nothing was gained, and with 256 no more.
const (
	wideBuffer = 160 << 10
	wideAfter  = 64 // reads in a row that fill the buffer
	wideUntil  = 4  // reads in a row that fill less than wideLittle of it
	wideLittle = wideBuffer / 4
	// loanTime is after how long a connection that was lent a buffer is asked whether it
	// has spoken; one that has not gives it back. Frames wait longer for room.
	loanTime = 250 * time.Millisecond
)

// busy is how a connection's reads filled its buffer of late.
type busy struct {
	filled int // in a row
	little int // in a row
}

func (b *busy) note(n int, filled bool) {
	switch {
	case filled:
		b.filled, b.little = b.filled+1, 0
	case n < wideLittle:
		b.filled, b.little = 0, b.little+1
	default:
		*b = busy{}
	}
}

// widen gives a busy connection a wide buffer, if one is to be had.
func (f *frames) widen() {
	f.busy = busy{}
	if !f.space.lend(wideBuffer) {
		return
	}
	f.wide = make([]byte, wideBuffer)
	f.moveTo(f.wide)
}

// narrow goes back to the base buffer, which must hold what is not consumed yet.
func (f *frames) narrow() {
	f.moveTo(f.base)
	f.wide = nil
	f.space.takeBack(wideBuffer)
}

// endLoan takes a wide buffer from a connection that was silent for loanTime.
func (f *frames) endLoan() {
	if !f.spoke {
		f.narrow()
	}
	f.until = lapsed
}

// moveTo makes another buffer the connection's, with what is not consumed yet.
func (f *frames) moveTo(buf []byte) {
	f.end = copy(buf, f.buf[f.start:f.end])
	f.start, f.buf = 0, buf
}

// usual is the buffer for nearly everything.
func (f *frames) usual() []byte {
	if f.wide != nil {
		return f.wide
	}
	return f.base
}
