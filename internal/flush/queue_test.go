package flush

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Any sequence of calls leaves the queue ordered, within its bounds and with
// its bytes right, and each payload comes out exactly once.
func TestQueueAgainstItsRules(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	q := &queue{maxBytes: 5000}
	in, out := 0, 0
	var under *payload // taken, to be put back
	for step := range 5000 {
		switch random.IntN(6) {
		case 0, 1, 2:
			p := &payload{sequence: uint64(step), body: make([]byte, random.IntN(1000)), born: time.Unix(int64(step), 0)}
			in++
			out += len(q.put(p))
		case 3:
			if under != nil {
				under.tries++
				out += len(q.put(under))
			}
			under = q.take()
		case 4:
			if random.IntN(20) == 0 {
				out += len(q.expire(time.Unix(int64(step-30), 0)))
			}
		case 5:
			if random.IntN(200) == 0 {
				out += len(q.drain())
			}
		}
		bytes := 0
		for _, p := range q.waiting {
			bytes += len(p.body)
		}
		if n, size := q.size(); size != bytes || size > q.maxBytes || n != len(q.waiting) {
			t.Fatalf("step %d: %d bytes announced, %d there", step, size, bytes)
		}
		if !slices.IsSortedFunc(q.waiting, func(a, b *payload) int { return int(a.sequence) - int(b.sequence) }) {
			t.Fatalf("step %d: out of order", step)
		}
		if held := in - out - len(q.waiting); held != 0 && (held != 1 || under == nil) {
			t.Fatalf("step %d: %d payloads in, %d out, %d waiting", step, in, out, len(q.waiting))
		}
	}
}

func TestQueueBoundsTheNumberOfPayloads(t *testing.T) {
	q := &queue{maxBytes: 1 << 30}
	for i := range maxWaiting {
		if evicted := q.put(&payload{sequence: uint64(i)}); len(evicted) != 0 {
			t.Fatalf("payload %d evicted another", i)
		}
	}
	if evicted := q.put(&payload{sequence: maxWaiting}); len(evicted) != 1 || evicted[0].sequence != 0 {
		t.Errorf("evicted %v, want the oldest", evicted)
	}
}
