package apm

import (
	"hash/maphash"
	"net/http/httptrace"
	"testing"
)

// TestARefusedBodyIsKnownOnce: a body that was counted and refused is known when it comes
// again, once for each refusal, until as many others were refused as are held.
func TestARefusedBodyIsKnownOnce(t *testing.T) {
	r := refusals{seed: maphash.MakeSeed()}
	one := r.sum([]byte("one"))
	if r.take(one) || r.take(r.sum(nil)) {
		t.Error("a body is known that nobody refused")
	}
	r.add(one)
	r.add(one)
	if !r.take(one) || !r.take(one) || r.take(one) {
		t.Error("a body that was refused twice is not known twice")
	}
	r.add(one)
	for i := range maxRefusals {
		if i == maxRefusals-1 && !r.take(one) {
			t.Errorf("a body is forgotten behind %d others", i)
		}
		r.add(r.sum([]byte{1, byte(i)}))
	}
	if r.add(one); !r.take(one) {
		t.Error("a body that was refused last is not known")
	}
}

// TestARequestIsDecidedOnce: where the transport tries again on another connection, a body
// that was decided upon is not counted again.
func TestARequestIsDecidedOnce(t *testing.T) {
	j := &job{decided: true, result: ResultNoRoom} // of no server that could count it
	j.trace().GotConn(httptrace.GotConnInfo{})
	if j.result != ResultNoRoom || j.sum != 0 {
		t.Errorf("it became %s", j.result)
	}
}

// TestARefusalIsNotedOfWhatWasCounted: and of nothing else, and once.
func TestARefusalIsNotedOfWhatWasCounted(t *testing.T) {
	s := &Server{}
	counted, left := &job{server: s, sum: 7}, &job{server: s}
	left.refused()
	counted.refused()
	counted.refused()
	if !s.refusals.take(7) || s.refusals.take(7) {
		t.Error("a body that was counted and refused is not held once")
	}
}
