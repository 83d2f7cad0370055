package main

import (
	"math"
	"testing"
)

// TestBill_IndependentOfSlices checks that ten seconds of load have the same bill whether or not they are divided
// into slices. The bill contains all work that the pod defers to the slices of other sides or does
// periodically, but only ten of the fifty seconds of idle usage.
func TestBill_IndependentOfSlices(t *testing.T) {
	const ticks, load, left, flush = 1000, 20000, 3000, 5000 // in µs
	var all []usage
	want := 0.0
	for n := range 50 {
		s := usage{own: n%5 == 0, seconds: 1 + float64(n%3)/10} // slices of different lengths
		s.cpu.App = ticks * s.seconds
		switch n % 5 {
		case 0:
			s.cpu.App += load
			want += s.cpu.App
		case 1:
			s.cpu.App += left
			want += left
		}
		if n%10 == 7 {
			s.cpu.App += flush
			want += flush
		}
		s.cpu.Daemon, s.cpu.Agent = s.cpu.App/10, s.cpu.App/100
		all = append(all, s)
	}
	got := bill(all)
	for _, part := range []struct{ got, want float64 }{
		{got.App, want},
		{got.Daemon, want / 10},
		{got.Agent, want / 100},
	} {
		if math.Abs(part.got-part.want) > 1e-6*part.want {
			t.Errorf("%v, not %v, of %+v", part.got, part.want, got)
		}
	}
	if got := idle(all).App; math.Abs(got-ticks) > 1e-6 {
		t.Errorf("%v per second without load", got)
	}
}

func TestBill_OneVariant(t *testing.T) {
	all := []usage{{own: true, seconds: 1, cpu: parts{App: 3}}, {own: true, seconds: 2, cpu: parts{App: 4}}}
	if got := bill(all); got != (parts{App: 7}) {
		t.Errorf("%+v", got)
	}
	if got := bill(nil); got != (parts{}) {
		t.Errorf("%+v", got)
	}
}
