package export

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// After any sequence of calls the queue is in order and within its limits, and its number of bytes
// is correct. Each payload is returned exactly once, and no two of one origin are in flight.
func TestQueue_AgainstModel(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	q := &queue{maxBytes: 5000, maxInFlight: 2000}
	in, out := 0, 0
	for step := range 5000 {
		switch random.IntN(6) {
		case 0, 1, 2:
			p := &Payload{
				sequence: uint64(step), Body: make([]byte, random.IntN(1000)),
				created: time.Unix(int64(step), 0),
			}
			p.Origin.Service = fmt.Sprint(random.IntN(8))
			in++
			out += len(q.put(p))
		case 3:
			if n := len(q.inFlight); n > 0 && random.IntN(2) == 0 {
				back := q.inFlight[random.IntN(n)]
				back.tries++
				q.endDelivery(back)
				out += len(q.put(back))
			} else {
				q.take()
			}
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
			bytes += len(p.Body)
		}
		if n, size := q.size(); size != bytes || size > q.maxBytes || n != len(q.waiting) {
			t.Fatalf("step %d: %d bytes reported, want %d", step, size, bytes)
		}
		if !slices.IsSortedFunc(q.waiting, func(a, b *Payload) int {
			return int(a.sequence) - int(b.sequence)
		}) {
			t.Fatalf("step %d: out of order", step)
		}
		if in-out != len(q.waiting)+q.deliveries() {
			t.Fatalf("step %d: %d payloads in, %d out, %d queued, %d in flight", step, in, out,
				len(q.waiting), q.deliveries())
		}
		origins, bytes := map[span.Origin]bool{}, 0
		for _, p := range q.inFlight {
			origins[p.Origin] = true
			bytes += len(p.Body)
		}
		if len(origins) != q.deliveries() || bytes > q.maxInFlight {
			t.Fatalf("step %d: %d bytes of %d origins are in flight in %d payloads", step, bytes,
				len(origins), q.deliveries())
		}
	}
}

// A payload that is too large to be in flight with others is not overtaken by smaller ones forever:
// smaller payloads wait until it was sent alone.
func TestQueue_LargePayloadIsDelivered(t *testing.T) {
	q := &queue{maxBytes: 1 << 20, maxInFlight: 1000}
	for i, size := range []int{600, 900, 100, 100} {
		p := &Payload{sequence: uint64(i), Body: make([]byte, size)}
		p.Origin.Service = fmt.Sprint(i)
		q.put(p)
	}
	first := q.take()
	if next := q.take(); first.sequence != 0 || next != nil {
		t.Fatalf("%d was taken first, and %v concurrently", first.sequence, next)
	}
	q.endDelivery(first)
	large, small, none := q.take(), q.take(), q.take()
	if large.sequence != 1 || small.sequence != 2 || none != nil {
		t.Errorf("%v, %v and %v were taken next", large, small, none)
	}
}

func TestQueue_NumberOfPayloadsIsBounded(t *testing.T) {
	q := &queue{maxBytes: 1 << 30}
	for i := range maxWaiting {
		if evicted := q.put(&Payload{sequence: uint64(i)}); len(evicted) != 0 {
			t.Fatalf("payload %d evicted another", i)
		}
	}
	if evicted := q.put(&Payload{sequence: maxWaiting}); len(evicted) != 1 || evicted[0].sequence != 0 {
		t.Errorf("evicted %v, want the oldest", evicted)
	}
}

// In a queue that is InOrder, one payload is in flight at a time, and a failed payload is retried
// before any other is sent.
func TestInOrder_OneInFlight(t *testing.T) {
	q := &queue{maxBytes: 1 << 20, maxInFlight: 1 << 20, inOrder: true}
	for i := range 3 {
		p := &Payload{sequence: uint64(i)}
		p.Origin.Service = fmt.Sprint(i)
		q.put(p)
	}
	for _, want := range []uint64{0, 0, 1, 2} {
		p := q.take()
		if concurrent := q.take(); p.sequence != want || concurrent != nil {
			t.Fatalf("%d was taken, and concurrently %v; want %d alone", p.sequence, concurrent, want)
		}
		q.endDelivery(p)
		if p.tries++; want == 0 && p.tries == 1 {
			q.put(p)
		}
	}
	if p := q.take(); p != nil {
		t.Errorf("%d was taken twice", p.sequence)
	}
}
