package bodies

import (
	"io"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestCountedBodiesAreForgottenInTime: of bodies that end without an answer the newest are
// held and no more, and nothing of those whose tracers have one.
func TestCountedBodiesAreForgottenInTime(t *testing.T) {
	b := NewCounted()
	publish := func(counted func()) { counted() }
	const all = 3 * maxUnanswered
	for sum := uint64(1); sum <= all; sum++ {
		if b.Once(sum, publish) || !b.Once(sum, publish) {
			t.Fatalf("body %d", sum)
		}
		b.Close(sum, true)
		b.Close(sum, sum%2 == 0)
	}
	if len(b.open) != 0 {
		t.Errorf("%d are open", len(b.open))
	}
	held := 0
	for sum := uint64(1); sum <= all; sum++ {
		if b.Once(sum, func(func()) {}) {
			held++
			b.Close(sum, true)
		}
	}
	if held != maxUnanswered {
		t.Errorf("%d are held, want %d", held, maxUnanswered)
	}
	if b.Once(all-1, func(func()) {}) || len(b.open) != 0 {
		t.Error("a body that was left to the agent is held")
	}
	// One whose answer perhaps nobody read is known, and takes no place of those without one.
	b.Once(1, publish)
	b.Close(1, false)
	for sum := uint64(2); sum <= all; sum++ {
		b.Once(sum, publish)
		b.CloseUnseen(sum)
	}
	if !b.Once(1, publish) || !b.Once(all, publish) || b.Once(2, publish) {
		t.Error("answers that perhaps nobody read hide requests without one, or are not known, or for ever")
	}
}

// TestABodyIsKnownAsLongAsAnybodyTriesAgain, and no longer.
func TestABodyIsKnownAsLongAsAnybodyTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewCounted()
		publish := func(counted func()) { counted() }
		b.Once(1, publish)
		for range 5 { // each try ends without an answer that ends the matter
			b.Close(1, false)
			time.Sleep(maxAge - time.Second)
			if !b.Once(1, publish) {
				t.Fatal("a body that is sent again is not known")
			}
		}
		b.Close(1, false)
		time.Sleep(maxAge)
		if b.Once(1, publish) {
			t.Error("a body is known for ever")
		}
	})
}

// TestAnAnswerIsReceivedOrNot: what shows it, in every order in which a connection can end.
func TestAnAnswerIsReceivedOrNot(t *testing.T) {
	const sum = 7
	await := func(r *Receipt) { r.Await(sum) }
	leave := func(r *Receipt) { r.Failed(io.EOF) }
	reset := func(r *Receipt) { r.Failed(syscall.ECONNRESET) }
	for name, test := range map[string]struct {
		happens  []func(*Receipt)
		received bool
	}{
		"it asks for more": {[]func(*Receipt){
			await, (*Receipt).Idle, (*Receipt).NextRequest,
			(*Receipt).Closed,
		}, true},
		"it leaves having read": {[]func(*Receipt){
			await, (*Receipt).Idle, leave,
			(*Receipt).Closed,
		}, true},
		"it leaves with something unread": {[]func(*Receipt){
			await, (*Receipt).Idle, reset, leave,
			(*Receipt).Closed,
		}, false},
		"it leaves before the answer": {[]func(*Receipt){
			leave, await, (*Receipt).Writing,
			(*Receipt).Idle, leave, (*Receipt).Closed,
		}, false},
		"it leaves within the answer": {[]func(*Receipt){
			(*Receipt).Writing, leave, await,
			(*Receipt).Writing, (*Receipt).Idle, leave, (*Receipt).Closed,
		}, false},
		"it leaves as the answer ends": {[]func(*Receipt){
			(*Receipt).Writing, leave, await,
			(*Receipt).Idle,
		}, true},
		"we close": {[]func(*Receipt){
			await, (*Receipt).Idle, (*Receipt).Closed,
			leave,
		}, false},
		"we close before the answer's end": {[]func(*Receipt){(*Receipt).Closed, await}, false},
		"its watch is ended, and it leaves": {[]func(*Receipt){func(r *Receipt) {
			r.Failed(os.ErrDeadlineExceeded)
		}, await, (*Receipt).Idle, leave}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewCounted()
			b.Once(sum, func(counted func()) { counted() })
			r := &Receipt{Bodies: b, EndOf: func(err error) error { return err }}
			for _, happens := range test.happens {
				happens(r)
			}
			open := 0 // the second request alone
			if !test.received {
				open = 1
			}
			if again := b.Once(sum, func(func()) {}); again == test.received || b.open[sum] != open {
				t.Errorf("recognised: %v, open %v", again, b.open)
			}
		})
	}
}
