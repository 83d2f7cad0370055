package client

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Daemons crash, shut down and stall at random while one publisher publishes. With enough memory, each span
// is counted once or is ambiguous; with little memory, all other spans are accounted for as lost.
func TestReplay_NothingLostOrCountedTwice(t *testing.T) {
	for name, maxKept := range map[string]int{
		"memory for all": 16 << 20, "little memory": minBuffers * bufferBytes,
		"none": KeepNothing,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				d := newFakeDaemon(t)
				d.settles, d.history = true, newHistory(seed)
				d.history.isOrdered = true // there is one shard
				d.start()
				c := open(t, Config{
					Socket:      d.socket,
					BufferBytes: minBuffers * bufferBytes,
					MaxKept:     maxKept,
					MaxAge:      time.Millisecond,
					MaxBackoff:  time.Millisecond,
				})
				accepted := runAtRandom(t, d, c, rand.New(rand.NewPCG(seed, 3)))
				if maxKept == KeepNothing { // then Close does not wait
					flushThrough(t, c)
				}
				mustClose(t, c)
				d.stop()
				checkHistory(t, d, c, accepted)
				if maxKept == 16<<20 && c.Stats().Unconfirmed > 0 {
					t.Errorf("%d spans did not fit", c.Stats().Unconfirmed)
				}
			}
		})
	}
}

// runAtRandom publishes while daemons start and end, and returns the numbers of the accepted spans.
func runAtRandom(t *testing.T, d *fakeDaemon, c *Client, dice *rand.Rand) (accepted map[uint64]bool) {
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
		case 5: // the next one crashes before its welcome, too
			d.kill()
			d.crashBeforeWelcome(t)
			publish(dice.IntN(3))
			d.start()
		case 6: // within a message that was written partially
			connects := c.Stats().Connects
			d.hang()
			for range 40 {
				publish(4)
				// so that the sender probably blocks on the full socket; the test does not depend on it
				time.Sleep(100 * time.Microsecond)
			}
			d.kill()
			d.start()
			eventually(t, "the client is reconnected", func() bool { return c.Stats().Connects > connects })
		default:
			seen := d.spansSeen()
			publish(1)
			eventually(t, "a span arrives", func() bool {
				return d.spansSeen() > seen || c.Stats().Buffered == 0
			})
		}
	}
	return accepted
}

// crashBeforeWelcome starts a daemon that crashes before its first welcome.
func (d *fakeDaemon) crashBeforeWelcome(t *testing.T) {
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

// checkHistory compares the spans that daemons have counted with Stats.
func checkHistory(t *testing.T, d *fakeDaemon, c *Client, accepted map[uint64]bool) {
	t.Helper()
	missing, doubtful, twice := uint64(0), uint64(0), 0
	for number := range accepted {
		n := d.history.counted[number]
		if d.history.doubtful[number] {
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
	if twice > 0 || missing+doubtful > known || !d.history.hasDiscarded && !isExact {
		t.Errorf("of %d spans %d are counted twice, %d are missing, %d doubtful; stats %+v",
			len(accepted), twice, missing, doubtful, s)
	}
	if s.Published != uint64(len(accepted)) || s.Buffered != 0 || s.Unsettled != 0 ||
		s.Sent != s.Published-sum(s.Lost) {
		t.Errorf("%d spans were published, stats %+v", len(accepted), s)
	}
	if d.lost[ReasonDaemonDied] > s.Unconfirmed || d.lost[ReasonAmbiguous] > s.Ambiguous {
		t.Errorf("the daemons were notified of %v, the client counts %+v", d.lost, s)
	}
	if len(d.history.asked) == 0 {
		t.Error("no daemon crashed, or no client asked")
	}
}

// The test keeps random messages in random buffers, truncates the last write at any position, and applies
// random outcomes, valid and invalid. A simple model computes the outcome of each span.
func TestReplay_EachSpanHasOneOutcome(t *testing.T) {
	dice := rand.New(rand.NewPCG(5, 34))
	for range 1000 {
		k := &sentBuffers{pool: newPool(16), maxBuffers: 1 + dice.IntN(6)}
		handed, messages := keepAtRandom(k, dice)
		kept := uint64(0) // number of spans before the first one that is kept
		if len(k.buffers) > 0 {
			kept = k.buffers[0].lastSpanNumber - uint64(k.buffers[0].spanCount)
		}
		settled := uint64(0)
		var outcomes []uint64
		if handed > 0 {
			settled = dice.Uint64N(handed + 1)
			for range dice.IntN(6) {
				outcomes = append(outcomes, dice.Uint64N(handed+handed/8+1), dice.Uint64N(4))
			}
			if dice.IntN(4) > 0 { // at the ends of messages, like the outcomes of a daemon
				outcomes = atEnds(outcomes, messages)
			}
		}
		var want outcomeCounts
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
				outcome := naiveOutcome(outcomes, of)
				switch {
				case last > handed:
					again = append(again, at)
				case of <= settled || outcome == 0:
				case outcome == 1:
					want.ambiguous++
				case at <= kept:
					want.lost++
				default:
					want.resend++
					again = append(again, at)
				}
			}
			at = last
		}
		if got := k.keepUndelivered(spanOutcomes{sent: handed, settled: settled, unsettledOutcomes: outcomes}); got != want {
			t.Fatalf("handed %d, settled %d, outcomes %d of messages %d, kept from %d: %+v, want %+v", handed,
				settled,
				outcomes, messages, kept, got, want)
		}
		checkAgain(t, k, again)
	}
}

// keepAtRandom keeps buffers with spans that are numbered from 1, and returns the number of spans of each message. The
// last buffer may be partially written.
func keepAtRandom(k *sentBuffers, dice *rand.Rand) (handed uint64, messages []int) {
	for range dice.IntN(12) {
		b := k.pool.take()
		s := &shard{pool: k.pool, gate: new(gate), buffer: b}
		for range 1 + dice.IntN(4) {
			batch := numbered(handed+uint64(b.spanCount)+1, 1+dice.IntN(messageSpans))
			if dice.IntN(3) == 0 { // so that some buffers are fuller than others
				batch[0].Key.Service = strings.Repeat("s", 5000)
			}
			if s.appendGroup(batch) < len(batch) {
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
		handed += uint64(b.spanCount)
		if dice.IntN(12) == 0 {
			written := b.countWrittenSpans(dice.IntN(len(b.bytes())))
			k.addPartlySent(b, handed)
			return before + uint64(written), messages
		}
		k.add(b, handed)
	}
	return handed, messages
}

// atEnds raises the bound of each outcome to the number of the last span in a message, where a daemon would have it.
// outcomes alternates between bounds and outcomes; messages has the number of spans in each message.
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

// checkAgain decodes the remaining messages, each buffer as on a separate connection.
func checkAgain(t *testing.T, k *sentBuffers, want []uint64) {
	t.Helper()
	read := &connHistory{owner: &history{isOrdered: true}}
	d := &fakeDaemon{counts: map[string]tally{}}
	for _, b := range k.buffers {
		c, before := &fakeConn{keys: map[uint32][]byte{}, history: read}, read.spans()
		for message := range b.messages() {
			kind, body, err := wire.Split(message[wire.HeaderLen:])
			if err == nil {
				err = d.take(c, kind, body)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if read.spans()-before != uint64(b.spanCount) || b.spanCount == 0 {
			t.Fatalf("a buffer contains %d spans, but counts %d", read.spans()-before, b.spanCount)
		}
	}
	if !slices.Equal(read.numbers, want) {
		t.Fatalf("%d spans are to be resent, want %d", len(read.numbers), len(want))
	}
	free := len(k.buffers)
	for k.pool.take() != nil {
		free++
	}
	if free != len(k.pool.buffers) {
		t.Fatalf("%d of %d buffers are free or kept", free, len(k.pool.buffers))
	}
}

// A daemon that is scraped answers a flush before a scrape has the spans. If it is killed meanwhile, the client resends
// them.
func TestFlush_DoesNotSettle(t *testing.T) {
	d := newFakeDaemon(t)
	d.isScraped = true
	earlier := []uint64(nil)
	d.welcome = func(*wire.Hello) *wire.Welcome {
		return &wire.Welcome{
			Version: wire.Version, MaxFrame: wire.MinMaxFrame, MaxBatch: wire.MinMaxBatch, MaxKeys: 1024,
			Settled: true, Token: "a", Earlier: earlier, Features: wire.Features{Stats: true},
		}
	}
	d.start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Hour, MaxBackoff: time.Millisecond})
	c.Publish(sampleBatch(100))
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := c.Stats(); s.Unsettled != 100 {
		t.Errorf("after the flush: %+v", s)
	}
	d.see(func() { earlier = []uint64{0, uint64(wire.Settled)} })
	d.kill()
	d.start()
	eventually(t, "the spans arrive again", func() bool { return d.spansSeen() == 200 })
}

// A client whose spans are all settled keeps few buffers, however many spans it sends.
func TestReplay_SettledSpansAreFreed(t *testing.T) {
	d := newFakeDaemon(t)
	d.settles, d.history = true, newHistory(1)
	d.start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Hour})
	next := uint64(1)
	for range 20 {
		for range 30 { // more than one buffer
			if !c.Publish(numbered(next, 256)) {
				t.Fatal("refused although there is room")
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
		t.Errorf("%d buffers are kept although all spans are settled", used)
	}
}

// A buffer is released when its last span is settled.
func TestReplay_LastSpanReleasesBuffer(t *testing.T) {
	k := &sentBuffers{pool: newPool(2), maxBuffers: 1}
	k.add(filledBuffer(t), 10)
	if k.freeSettled(9); len(k.buffers) != 1 {
		t.Error("an unsettled buffer was released")
	}
	if k.freeSettled(10); len(k.buffers) != 0 {
		t.Error("a settled buffer is kept")
	}
}

// A client sends 90 spans in three messages to a daemon that crashes. The test checks each response that
// the next daemon can give.
func TestReplay_ResponsesOfNextDaemon(t *testing.T) {
	const settled, doubtful, again = uint64(wire.Settled), uint64(wire.Ambiguous), uint64(wire.Resend)
	long := strings.Repeat("t", wire.MaxToken+1)
	for name, test := range map[string]struct {
		earlier                []uint64
		token                  string
		reported               uint64 // number of spans that were reported as settled before the crash
		unwanted               bool   // the next daemon does not accept statistics
		again, ambiguous, died uint64
		isNotAsked             bool
	}{
		"all spans are to be resent": {earlier: []uint64{0, settled}, again: 90},
		"all spans are settled":      {earlier: []uint64{90, settled}},
		"all spans are doubtful":     {earlier: []uint64{0, settled, 90, doubtful}, ambiguous: 90},
		"some of each": {
			earlier: []uint64{20, settled, 50, doubtful, 90, again}, ambiguous: 30, again: 40,
		},
		"some of each in another order": {
			earlier: []uint64{0, settled, 20, again, 50, doubtful}, ambiguous: 30, again: 60,
		},
		"spans settled before the crash stay settled": {
			reported: 50, earlier: []uint64{20, settled, 50, doubtful}, again: 40,
		},
		"spans with an unknown outcome are resent": {
			earlier: []uint64{20, settled, 50, 9},
			again:   70,
		},
		"bounds lie within messages": {
			earlier: []uint64{10, settled, 30, doubtful, 80, settled}, ambiguous: 20, again: 40,
		},
		"bounds fall and exceed":               {earlier: []uint64{50, settled, 20, doubtful, 1 << 60, settled}},
		"half a pair":                          {earlier: []uint64{50, settled, 90}, again: 40},
		"no outcomes":                          {died: 90},
		"no outcomes of unsettled spans":       {reported: 20, died: 70},
		"everything was settled":               {reported: 90, isNotAsked: true},
		"no token":                             {token: "-", died: 90, isNotAsked: true},
		"token too long":                       {token: long, died: 90, isNotAsked: true},
		"statistics are not accepted any more": {earlier: []uint64{20, settled}, unwanted: true, again: 70},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFakeDaemon(t)
			var hellos []string
			welcome := wire.Welcome{
				Version: wire.Version, MaxFrame: wire.MinMaxFrame, MaxBatch: wire.MinMaxBatch, MaxKeys: 1024,
				Settled:  true,
				Token:    strings.TrimPrefix("first"+test.token, "first-"),
				Features: wire.Features{Stats: true},
			}
			if len(test.token) > 1 {
				welcome.Token = test.token
			}
			d.welcome = func(m *wire.Hello) *wire.Welcome {
				hellos = append(hellos, m.Earlier)
				return &welcome
			}
			d.start()
			c := open(t, Config{Socket: d.socket, MaxAge: time.Hour, MaxBackoff: time.Millisecond})
			ask := context.WithoutCancel(t.Context())
			for _, size := range []int{20, 30, 40} { // one message each, all kept in one buffer
				c.Publish(sampleBatch(size))
				d.see(func() {
					d.answer = func(id uint64) *wire.Flush { return &wire.Flush{ID: id, Error: "later"} }
				})
				if err := c.Flush(ask); err == nil {
					t.Fatal("a failed flush succeeded")
				}
			}
			if s := c.Stats(); s.Unsettled != 90 || s.Sent != 90 {
				t.Fatalf("before: %+v", s)
			}
			d.see(func() {
				d.spans, d.counts = 0, map[string]tally{}
				welcome.Token, welcome.Earlier, welcome.Features.Stats = "second", test.earlier, !test.unwanted
			})
			if test.reported > 0 {
				d.settle(test.reported)
			}
			d.kill()
			d.start()
			eventually(t, "the client is reconnected", func() bool { return c.Stats().Connects == 2 })
			d.see(func() { d.answer = func(id uint64) *wire.Flush { return &wire.Flush{ID: id, OK: true} } })
			if err := c.Flush(ask); err != nil {
				t.Fatal(err)
			}
			want := []string{"", "first"}
			if test.isNotAsked {
				want[1] = ""
			}
			s := c.Stats()
			counts, lost, arrived := [2]uint64{test.ambiguous, test.died}, uint64(0), test.again
			if test.unwanted {
				lost, arrived = test.again, 0
			}
			if got := [2]uint64{s.Ambiguous, s.Unconfirmed}; got != counts ||
				s.Lost[ReasonNotWanted] != lost ||
				s.Sent != 90-lost || s.Unsettled != 0 {
				t.Errorf("stats %+v", s)
			}
			d.see(func() {
				if d.spans != arrived || !slices.Equal(hellos, want) {
					t.Errorf("%d spans were resent, want %d; hellos with the tokens %q", d.spans, arrived, hellos)
				}
				if got := [2]uint64{d.lost[ReasonAmbiguous], d.lost[ReasonDaemonDied]}; got != counts {
					t.Errorf("the next daemon was notified of %v", d.lost)
				}
			})
			mustClose(t, c)
			checkAccounting(t, c, 90)
		})
	}
}

// A daemon that sends bye delivers all spans, or is killed before. In the first case, the next one has no
// outcomes; in the second, it knows which spans have to be resent.
func TestReplay_AfterBye(t *testing.T) {
	for name, isKilled := range map[string]bool{"it stops gracefully": false, "it is killed": true} {
		t.Run(name, func(t *testing.T) { followBye(t, isKilled) })
	}
}

// stoppedWithUnsettled returns a daemon that has sent bye, and its client, whose 70 spans are not settled.
func stoppedWithUnsettled(t *testing.T) (*fakeDaemon, *Client) {
	d := newFakeDaemon(t)
	d.settles, d.history = true, newHistory(1)
	d.start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Millisecond, MaxBackoff: time.Millisecond})
	c.Publish(numbered(1, 70))
	eventually(t, "the daemon has all", func() bool {
		return d.spansSeen() == 70 && c.Stats().Unsettled == 70
	})
	d.stop()
	return d, c
}

func followBye(t *testing.T, isKilled bool) {
	d, c := stoppedWithUnsettled(t)
	arriving := 70
	if isKilled {
		d.history.conns["connection 0"].outcomes = []uint64{0, uint64(wire.Settled)}
		arriving += 70
	}
	d.start()
	eventually(t, "the client is reconnected", func() bool { return c.Stats().Connects == 2 })
	eventually(t, "unsettled spans are resent", func() bool { return d.spansSeen() == uint64(arriving) })
	eventually(t, "the spans are counted as sent", func() bool { return c.Stats().Sent == 70 })
	if s := c.Stats(); s.Unsettled != uint64(arriving-70) || s.Unconfirmed != 0 {
		t.Errorf("stats %+v", s)
	}
	mustClose(t, c)
	d.stop()
	if !slices.Equal(d.history.asked, []string{"connection 0"}) {
		t.Errorf("the next daemon was asked about %q", d.history.asked)
	}
}

// A daemon was killed while it shut down. Its successor does not know the outcomes until then, and reports that. The client
// asks again, also while it closes.
func TestReplay_EarlierDaemonPending(t *testing.T) {
	for name, isClosing := range map[string]bool{"client stays open": false, "client closes": true} {
		t.Run(name, func(t *testing.T) {
			d, c := stoppedWithUnsettled(t)
			asked, isKnown := 0, false
			d.see(func() {
				d.history.conns["connection 0"].outcomes = []uint64{0, uint64(wire.Settled)}
				d.greeting = func(conn *net.UnixConn) bool {
					if asked++; !isKnown {
						conn.Write(wire.AppendBye(nil, &wire.Bye{Reason: earlierPending}))
					}
					return isKnown
				}
			})
			d.start()
			isAskedAgain := func() {
				var before int
				d.see(func() { before = asked })
				eventually(t, "it asks again", func() (isAgain bool) {
					d.see(func() { isAgain = asked > before+1 })
					return isAgain
				})
			}
			isAskedAgain()
			closed := make(chan error, 1)
			end := func() { closed <- c.Close(context.WithoutCancel(t.Context())) }
			if isClosing {
				go end()
				eventually(t, "it closes", c.isClosing.Load)
				isAskedAgain()
			}
			d.see(func() { isKnown = true })
			if !isClosing {
				eventually(t, "the spans are resent", func() bool { return d.spansSeen() == 140 })
				go end()
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
			if s := c.Stats(); d.spansSeen() != 140 || s.Unconfirmed != 0 || s.Ambiguous != 0 || s.Unsettled != 0 {
				t.Errorf("%d spans arrived: %+v", d.spansSeen(), s)
			}
		})
	}
}

// closing is a client that has sent 70 spans, and the conditions of its Close.
func closing(t *testing.T, maxKept int) (d *fakeDaemon, c *Client, log *syncBuffer,
	end func(context.Context),
) {
	d, log = newFakeDaemon(t), &syncBuffer{}
	d.settles, d.history = true, newHistory(1)
	d.answer = func(uint64) *wire.Flush { return nil }
	d.start()
	c = open(t, Config{
		Socket: d.socket, MaxKept: maxKept, MaxBackoff: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	eventually(t, "it is connected", func() bool { return c.Stats().Connected })
	c.Publish(numbered(1, 70))
	return d, c, log, func(ctx context.Context) {
		t.Helper()
		if err := c.Close(ctx); err != nil {
			t.Errorf("closed with %v", err)
		}
		checkAccounting(t, c, 70)
	}
}

func (d *fakeDaemon) isAsked() (is bool) {
	d.see(func() { is = d.flushes > 0 })
	return is
}

// Close requests a flush. It returns when all spans are settled, or when a destination has not accepted
// them, which is logged.
func TestClose_WaitsForOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		answer    wire.Flush
		unsettled uint64
	}{
		"settled": {wire.Flush{OK: true}, 0},
		"refused": {wire.Flush{Error: "the agent is unreachable"}, 70},
	} {
		t.Run(name, func(t *testing.T) {
			d, c, log, end := closing(t, 0)
			byes := -1
			d.see(func() {
				d.answer = func(id uint64) *wire.Flush {
					byes, test.answer.ID = d.byes, id
					return &test.answer
				}
			})
			end(t.Context())
			d.stop()
			s := c.Stats()
			if byes != 0 || d.byes != 1 || d.spans != 70 || s.Unsettled != test.unsettled || s.Sent != 70 {
				t.Errorf("%d and %d byes, %d spans, stats %+v", byes, d.byes, d.spans, s)
			}
			if isLogged := strings.Contains(log.String(), "unsettled=70"); isLogged != (test.unsettled > 0) {
				t.Errorf("log:\n%s", log)
			}
		})
	}
}

// Close waits until its context is done, but a few seconds at most.
func TestClose_WaitIsBounded(t *testing.T) {
	t.Run("some seconds", func(t *testing.T) {
		d, c, _, end := closing(t, 0)
		end(context.Background())
		if s := c.Stats(); s.Unsettled != 70 || !d.isAsked() || d.byes != 1 {
			t.Errorf("%d byes, stats %+v", d.byes, s)
		}
	})
	t.Run("its context", func(t *testing.T) {
		d, c, _, end := closing(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		d.see(func() { d.answer = func(uint64) *wire.Flush { cancel(); return nil } })
		end(ctx)
		if s := c.Stats(); s.Unsettled != 70 {
			t.Errorf("stats %+v", s)
		}
	})
	t.Run("nothing is kept", func(t *testing.T) {
		d, c, _, end := closing(t, KeepNothing)
		end(t.Context())
		if s := c.Stats(); s.Unsettled != 70 || d.isAsked() {
			t.Errorf("stats %+v", s)
		}
	})
}

// If the next daemon is available, it gets all spans again. Otherwise, they are counted as unsettled and
// logged.
func TestClose_DaemonCrashes(t *testing.T) {
	t.Run("the next daemon is available", func(t *testing.T) {
		d, c, _, end := closing(t, 0)
		var dead *fakeConn
		d.see(func() {
			d.onFrame = func(f *fakeConn, kind wire.Type) {
				if kind == wire.TypeFlush && dead == nil {
					dead = f
					f.history.crash()
					d.see(func() {
						d.answer = func(id uint64) *wire.Flush { return &wire.Flush{ID: id, OK: true} }
					})
					f.Close()
				}
			}
		})
		end(t.Context())
		d.stop()
		d.history.isOrdered = false
		accepted := map[uint64]bool{}
		for number := range uint64(70) {
			accepted[number+1] = true
		}
		checkHistory(t, d, c, accepted)
		if s := c.Stats(); s.Connects != 2 || s.Unconfirmed > 0 {
			t.Errorf("stats %+v", s)
		}
	})
	t.Run("no daemon is available", func(t *testing.T) {
		d, c, log, end := closing(t, 0)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			end(t.Context())
		}()
		eventually(t, "it waits", d.isAsked)
		d.kill()
		<-ended
		if s := c.Stats(); s.Unsettled != 70 || s.Sent != 70 ||
			!strings.Contains(log.String(), "unsettled=70") {
			t.Errorf("stats %+v; log:\n%s", s, log)
		}
	})
	t.Run("the daemon has stopped", func(t *testing.T) {
		d, c, _, end := closing(t, 0)
		if err := c.Flush(canceledWhenAsked(t, d)); err == nil {
			t.Error("the flush succeeded without a response")
		}
		d.kill()
		eventually(t, "the client is disconnected", func() bool { return !c.Stats().Connected })
		end(t.Context())
		if s := c.Stats(); s.Unsettled != 70 {
			t.Errorf("stats %+v", s)
		}
	})
}

// canceledWhenAsked is a context that is canceled when the daemon receives a flush request.
func canceledWhenAsked(t *testing.T, d *fakeDaemon) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	d.see(func() { d.answer = func(uint64) *wire.Flush { cancel(); return nil } })
	return ctx
}
