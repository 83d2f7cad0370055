package apm

import (
	"io"
	"os"
	"syscall"
	"testing"
)

// TestCountedBodiesAreForgottenInTime: of bodies that end without an answer the newest are
// held and no more, and nothing of those whose tracers have one.
func TestCountedBodiesAreForgottenInTime(t *testing.T) {
	b := newCountedBodies()
	publish := func(counted func()) { counted() }
	const all = 3 * maxUnanswered
	for sum := uint64(1); sum <= all; sum++ {
		if b.once(sum, publish) || !b.once(sum, publish) {
			t.Fatalf("body %d", sum)
		}
		b.close(sum, true)
		b.close(sum, sum%2 == 0)
	}
	if len(b.open) != 0 {
		t.Errorf("%d are open", len(b.open))
	}
	held := 0
	for sum := uint64(1); sum <= all; sum++ {
		if b.once(sum, func(func()) {}) {
			held++
			b.close(sum, true)
		}
	}
	if held != maxUnanswered {
		t.Errorf("%d are held, want %d", held, maxUnanswered)
	}
	if b.once(all-1, func(func()) {}) || len(b.open) != 0 {
		t.Error("a body that was left to the agent is held")
	}
}

// TestAnAnswerIsReceivedOrNot: what shows it, in every order in which a connection can end.
func TestAnAnswerIsReceivedOrNot(t *testing.T) {
	const sum = 7
	await := func(r *receipt) { r.await(sum) }
	leave := func(r *receipt) { r.failed(io.EOF) }
	reset := func(r *receipt) { r.failed(syscall.ECONNRESET) }
	for name, test := range map[string]struct {
		happens  []func(*receipt)
		received bool
	}{
		"it asks for more":                  {[]func(*receipt){await, (*receipt).idle, (*receipt).nextRequest, (*receipt).closed}, true},
		"it leaves having read":             {[]func(*receipt){await, (*receipt).idle, leave, (*receipt).closed}, true},
		"it leaves with something unread":   {[]func(*receipt){await, (*receipt).idle, reset, leave, (*receipt).closed}, false},
		"it leaves before the answer":       {[]func(*receipt){leave, await, (*receipt).writing, (*receipt).idle, leave, (*receipt).closed}, false},
		"it leaves within the answer":       {[]func(*receipt){(*receipt).writing, leave, await, (*receipt).writing, (*receipt).idle, leave, (*receipt).closed}, false},
		"it leaves as the answer ends":      {[]func(*receipt){(*receipt).writing, leave, await, (*receipt).idle}, true},
		"we close":                          {[]func(*receipt){await, (*receipt).idle, (*receipt).closed, leave}, false},
		"we close before the answer's end":  {[]func(*receipt){(*receipt).closed, await}, false},
		"its watch is ended, and it leaves": {[]func(*receipt){func(r *receipt) { r.failed(os.ErrDeadlineExceeded) }, await, (*receipt).idle, leave}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newCountedBodies()
			b.once(sum, func(counted func()) { counted() })
			r := &receipt{bodies: b}
			for _, happens := range test.happens {
				happens(r)
			}
			open := 0 // the second request alone
			if !test.received {
				open = 1
			}
			if again := b.once(sum, func(func()) {}); again == test.received || b.open[sum] != open {
				t.Errorf("recognised: %v, open %v", again, b.open)
			}
		})
	}
}

// TestARequestIsDecidedOnce: where another connection is taken, a body
// that was decided upon is not counted again.
func TestARequestIsDecidedOnce(t *testing.T) {
	j := &job{decided: true, result: ResultNoRoom} // of no server that could count it
	j.decide()
	if j.result != ResultNoRoom || j.sum != 0 {
		t.Errorf("it became %s", j.result)
	}
}
