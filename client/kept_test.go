package client

import (
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestNothingIsLostAndNothingTwice has daemons die, leave and stall at random under one publisher. With
// room for all, each span is counted once or doubtful; with little, what is neither is in the books.
func TestNothingIsLostAndNothingTwice(t *testing.T) {
	for name, maxKept := range map[string]int{
		"room for all": 16 << 20, "little room": minBuffers * bufferBytes,
		"none": KeepNothing,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				d := newFakeDaemon(t)
				d.settles, d.lives = true, newLives(seed)
				d.lives.isOrdered = true // there is one shard
				d.start()
				c := open(t, Config{
					Socket:      d.socket,
					BufferBytes: minBuffers * bufferBytes,
					MaxKept:     maxKept,
					MaxAge:      time.Millisecond,
					MaxBackoff:  time.Millisecond,
				})
				accepted := liveAtRandom(t, d, c, rand.New(rand.NewPCG(seed, 3)))
				if maxKept == KeepNothing { // then Close does not wait
					flushThrough(t, c)
				}
				mustClose(t, c)
				d.stop()
				checkLives(t, d, c, accepted)
				if maxKept == 16<<20 && c.Stats().Unconfirmed > 0 {
					t.Errorf("%d spans had no room", c.Stats().Unconfirmed)
				}
			}
		})
	}
}

// liveAtRandom publishes while daemons come and go, and returns the numbers that were accepted.
func liveAtRandom(t *testing.T, d *fakeDaemon, c *Client, dice *rand.Rand) (accepted map[uint64]bool) {
	accepted = map[uint64]bool{}
	next := uint64(1)
	publish := func(batches int) {
		for range batches {
			size := 1 + dice.IntN(300)
			if c.Publish(numbered(next, size)) {
				for i := range uint64(size) {
					accepted[next+i] = true
				}
			}
			next += uint64(size)
		}
	}
	for range 60 {
		publish(dice.IntN(4))
		switch dice.IntN(8) {
		case 0:
			d.settleSome()
		case 1:
			if err := c.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 2:
			d.stop()
			publish(dice.IntN(3))
			d.start()
		case 3, 4:
			d.kill()
			publish(dice.IntN(3))
			d.start()
		case 5: // the next one dies before its welcome, too
			d.kill()
			d.dieGreeting(t)
			publish(dice.IntN(3))
			d.start()
		case 6: // within a message, of which the socket has a part
			connects := c.Stats().Connects
			d.hang()
			for range 40 {
				publish(4)
				// for the sender to meet the full socket; nothing depends on it
				time.Sleep(100 * time.Microsecond)
			}
			d.kill()
			d.start()
			eventually(t, "the client is back", func() bool { return c.Stats().Connects > connects })
		default:
			seen := d.spansSeen()
			publish(1)
			eventually(t, "something comes", func() bool {
				return d.spansSeen() > seen || c.Stats().Buffered == 0
			})
		}
	}
	return accepted
}

// dieGreeting is a daemon that says nothing to its first client.
func (d *fakeDaemon) dieGreeting(t *testing.T) {
	greeted := make(chan struct{})
	var once sync.Once
	d.see(func() {
		d.greeting = func(*net.UnixConn) bool { once.Do(func() { close(greeted) }); return false }
	})
	d.start()
	<-greeted
	d.kill()
	d.see(func() { d.greeting = nil })
}

// checkLives compares what daemons counted with the client's books.
func checkLives(t *testing.T, d *fakeDaemon, c *Client, accepted map[uint64]bool) {
	t.Helper()
	missing, doubtful, twice := uint64(0), uint64(0), 0
	for number := range accepted {
		n := d.lives.counted[number]
		if d.lives.doubtful[number] {
			doubtful++
			n++
		}
		switch {
		case n == 0:
			missing++
		case n > 1:
			twice++
		}
	}
	s := c.Stats()
	known := s.Ambiguous + s.Unconfirmed + sum(s.Lost)
	isExact := missing == s.Unconfirmed+sum(s.Lost) && doubtful == s.Ambiguous
	if twice > 0 || missing+doubtful > known || !d.lives.hasForgotten && !isExact {
		t.Errorf("of %d spans %d are counted twice, %d are missing, %d doubtful; the client says %+v",
			len(accepted), twice, missing, doubtful, s)
	}
	if s.Published != uint64(len(accepted)) || s.Buffered != 0 || s.Unsettled != 0 ||
		s.Sent != s.Published-sum(s.Lost) {
		t.Errorf("of %d spans that were published the books say %+v", len(accepted), s)
	}
	if d.lost[ReasonDaemonDied] > s.Unconfirmed || d.lost[ReasonAmbiguous] > s.Ambiguous {
		t.Errorf("the daemons heard of %v, the client counts %+v", d.lost, s)
	}
	if len(d.lives.asked) == 0 {
		t.Error("no daemon died, or no client asked")
	}
}

// TestEachSpanHasOneFate keeps random messages in random buffers, cuts the last write anywhere, and goes
// by random outcomes, right ones and wrong ones. A naive model, span by span, says what becomes of each.
func TestEachSpanHasOneFate(t *testing.T) {
	dice := rand.New(rand.NewPCG(5, 34))
	for range 1000 {
		k := &kept{pool: newPool(16), most: 1 + dice.IntN(6)}
		handed, messages := keepAtRandom(k, dice)
		kept := uint64(0) // the first that is
		if len(k.buffers) > 0 {
			kept = k.buffers[0].upTo - uint64(k.buffers[0].spans)
		}
		settled := uint64(0)
		var outcomes []uint64
		if handed > 0 {
			settled = dice.Uint64N(handed + 1)
			for range dice.IntN(6) {
				outcomes = append(outcomes, dice.Uint64N(handed+handed/8+1), dice.Uint64N(4))
			}
			if dice.IntN(4) > 0 { // as a daemon says them, at the ends of messages
				outcomes = atEnds(outcomes, messages)
			}
		}
		var want fates
		var again []uint64
		at := uint64(0)
		for _, spans := range messages {
			last := at + uint64(spans)
			for at++; at <= last; at++ {
				// The outcome of a message that is kept is that of its last span.
				of := at
				if at > kept {
					of = last
				}
				what := naiveOutcome(outcomes, of)
				switch {
				case last > handed:
					again = append(again, at)
				case of <= settled || what == 0:
				case what == 1:
					want.ambiguous++
				case at <= kept:
					want.died++
				default:
					want.again++
					again = append(again, at)
				}
			}
			at = last
		}
		if got := k.sift(handed, settled, outcomes); got != want {
			t.Fatalf("handed %d, settled %d, outcomes %d of messages %d, kept from %d: %+v, want %+v", handed,
				settled,
				outcomes, messages, kept, got, want)
		}
		checkAgain(t, k, again)
	}
}

// keepAtRandom keeps buffers of spans numbered from 1 on, and returns the spans of each message. The last
// write may have been cut.
func keepAtRandom(k *kept, dice *rand.Rand) (handed uint64, messages []int) {
	for range dice.IntN(12) {
		b := k.pool.take()
		s := &shard{pool: k.pool, gate: new(gate), buffer: b}
		for range 1 + dice.IntN(4) {
			batch := numbered(handed+uint64(b.spans)+1, 1+dice.IntN(frameSpans))
			if dice.IntN(3) == 0 { // so that buffers differ in how full they are
				batch[0].Key.Service = strings.Repeat("s", 5000)
			}
			if s.fill(batch) < len(batch) {
				break
			}
		}
		b.seal()
		for _, spans := range b.messages() {
			if spans > 0 {
				messages = append(messages, spans)
			}
		}
		before := handed
		handed += uint64(b.spans)
		if dice.IntN(12) == 0 {
			taken := b.taken(dice.IntN(len(b.bytes())))
			k.hold(b, handed)
			return before + uint64(taken), messages
		}
		k.add(b, handed)
	}
	return handed, messages
}

// atEnds moves bounds to where messages end.
func atEnds(outcomes []uint64, messages []int) []uint64 {
	for i := 0; i < len(outcomes); i += 2 {
		end := uint64(0)
		for _, spans := range messages {
			if end += uint64(spans); end >= outcomes[i] {
				break
			}
		}
		outcomes[i] = end
	}
	return outcomes
}

func naiveOutcome(outcomes []uint64, number uint64) uint64 {
	for i := 0; i+1 < len(outcomes); i += 2 {
		if outcomes[i] >= number {
			return outcomes[i+1]
		}
	}
	return 2
}

// checkAgain reads what is left in the buffers, each on a connection of its own.
func checkAgain(t *testing.T, k *kept, want []uint64) {
	t.Helper()
	read := &life{of: &lives{isOrdered: true}}
	d := &fakeDaemon{counts: map[string]tally{}}
	for _, b := range k.buffers {
		c, before := &fakeConn{keys: map[uint32][]byte{}, life: read}, read.spans()
		for message := range b.messages() {
			kind, body, err := wire.Split(message[wire.HeaderLen:])
			if err == nil {
				err = d.take(c, kind, body)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if read.spans()-before != uint64(b.spans) || b.spans == 0 {
			t.Fatalf("%d spans lie in a buffer that counts %d", read.spans()-before, b.spans)
		}
	}
	if !slices.Equal(read.numbers, want) {
		t.Fatalf("%d spans are to be handed over again, want %d", len(read.numbers), len(want))
	}
	free := len(k.buffers)
	for k.pool.take() != nil {
		free++
	}
	if free != len(k.pool.buffers) {
		t.Fatalf("%d of %d buffers are free or kept", free, len(k.pool.buffers))
	}
}

// TestWhatIsSettledIsFree: a client that goes on sending, and whose daemon settles all, keeps little.
func TestWhatIsSettledIsFree(t *testing.T) {
	d := newFakeDaemon(t)
	d.settles, d.lives = true, newLives(1)
	d.start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Hour})
	next := uint64(1)
	for range 20 {
		for range 30 { // more than a buffer
			if !c.Publish(numbered(next, 256)) {
				t.Fatal("refused, though there is room")
			}
			next += 256
		}
		if err := c.Flush(t.Context()); err != nil { // settles it
			t.Fatal(err)
		}
	}
	free := 0
	for b := c.pool.free.pop(c.pool.buffers); b != nil; b = c.pool.free.pop(c.pool.buffers) {
		free++
	}
	if used := len(c.pool.buffers) - free; used > 16 {
		t.Errorf("%d buffers are kept, though all is settled", used)
	}
}

// TestReleaseGoesByTheLastSpan of a buffer.
func TestReleaseGoesByTheLastSpan(t *testing.T) {
	k := &kept{pool: newPool(2), most: 1}
	k.add(filledBuffer(t), 10)
	if k.release(9); len(k.buffers) != 1 {
		t.Error("what is not settled is let go")
	}
	if k.release(10); len(k.buffers) != 0 {
		t.Error("what is settled is kept")
	}
}
