package client

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestWhatTheNextDaemonSays follows 90 spans in three messages to a daemon that dies, and on by each
// answer that the next one may give.
func TestWhatTheNextDaemonSays(t *testing.T) {
	const settled, doubtful, again = uint64(wire.Settled), uint64(wire.Doubtful), uint64(wire.Again)
	long := strings.Repeat("t", wire.MaxToken+1)
	for name, test := range map[string]struct {
		earlier                []uint64
		token                  string
		told                   uint64 // settled, right before the end
		unwanted               bool   // the next daemon wants no stats
		again, ambiguous, died uint64
		isNotAsked             bool
	}{
		"all is to be handed over again": {earlier: []uint64{0, settled}, again: 90},
		"all is settled":                 {earlier: []uint64{90, settled}},
		"all is doubtful":                {earlier: []uint64{0, settled, 90, doubtful}, ambiguous: 90},
		"some of each": {
			earlier: []uint64{20, settled, 50, doubtful, 90, again}, ambiguous: 30, again: 40,
		},
		"some of each in another order": {
			earlier: []uint64{0, settled, 20, again, 50, doubtful}, ambiguous: 30, again: 60,
		},
		"what was settled before the end is settled": {
			told: 50, earlier: []uint64{20, settled, 50, doubtful}, again: 40,
		},
		"an outcome of another version is to be handed over again": {
			earlier: []uint64{20, settled, 50, 9},
			again:   70,
		},
		"bounds lie within messages": {
			earlier: []uint64{10, settled, 30, doubtful, 80, settled}, ambiguous: 20, again: 40,
		},
		"bounds fall and exceed":           {earlier: []uint64{50, settled, 20, doubtful, 1 << 60, settled}},
		"half a pair":                      {earlier: []uint64{50, settled, 90}, again: 40},
		"it knows nothing":                 {died: 90},
		"it knows nothing of what is left": {told: 20, died: 70},
		"everything was settled":           {told: 90, isNotAsked: true},
		"no token was said":                {token: "-", died: 90, isNotAsked: true},
		"too long a token":                 {token: long, died: 90, isNotAsked: true},
		"stats are not wanted any more":    {earlier: []uint64{20, settled}, unwanted: true, again: 70},
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
			for _, size := range []int{20, 30, 40} { // a message each, and all of them kept in one buffer
				c.Publish(sampleBatch(size))
				d.see(func() {
					d.answer = func(id uint64) *wire.Flush { return &wire.Flush{ID: id, Error: "later"} }
				})
				if err := c.Flush(ask); err == nil {
					t.Fatal("a flush that failed is none")
				}
			}
			if s := c.Stats(); s.Unsettled != 90 || s.Sent != 90 {
				t.Fatalf("before: %+v", s)
			}
			d.see(func() {
				d.spans, d.counts = 0, map[string]tally{}
				welcome.Token, welcome.Earlier, welcome.Features.Stats = "second", test.earlier, !test.unwanted
			})
			if test.told > 0 {
				d.settle(test.told)
			}
			d.kill()
			d.start()
			eventually(t, "the client is back", func() bool { return c.Stats().Connects == 2 })
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
				t.Errorf("the books: %+v", s)
			}
			d.see(func() {
				if d.spans != arrived || !slices.Equal(hellos, want) {
					t.Errorf("%d spans came again, want %d; hellos were of %q", d.spans, arrived, hellos)
				}
				if got := [2]uint64{d.lost[ReasonAmbiguous], d.lost[ReasonDaemonDied]}; got != counts {
					t.Errorf("the next daemon is told of %v", d.lost)
				}
			})
			mustClose(t, c)
			checkBooks(t, c, 90)
		})
	}
}

// TestTheNextIsAskedBehindABye: a daemon that says bye has all in its books, and delivers them, or is killed
// before. The next one knows nothing of it in the first case, and what is to be handed over again in the
// second.
func TestTheNextIsAskedBehindABye(t *testing.T) {
	for name, isKilled := range map[string]bool{"it ends in order": false, "it is killed": true} {
		t.Run(name, func(t *testing.T) { followBye(t, isKilled) })
	}
}

func followBye(t *testing.T, isKilled bool) {
	d := newFakeDaemon(t)
	d.settles, d.lives = true, newLives(1)
	d.start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Millisecond, MaxBackoff: time.Millisecond})
	c.Publish(numbered(1, 70))
	eventually(t, "the daemon has all", func() bool {
		return d.spansSeen() == 70 && c.Stats().Unsettled == 70
	})
	d.stop()
	comes := 70
	if isKilled {
		d.lives.lives["life 0"].outcomes = []uint64{0, uint64(wire.Settled)}
		comes += 70
	}
	d.start()
	eventually(t, "the client is back", func() bool { return c.Stats().Connects == 2 })
	eventually(t, "it hands over what nobody has", func() bool { return d.spansSeen() == uint64(comes) })
	eventually(t, "the books are those of what it handed over", func() bool { return c.Stats().Sent == 70 })
	if s := c.Stats(); s.Unsettled != uint64(comes-70) || s.Unconfirmed != 0 {
		t.Errorf("the books: %+v", s)
	}
	mustClose(t, c)
	d.stop()
	if !slices.Equal(d.lives.asked, []string{"life 0"}) {
		t.Errorf("the next daemon was asked about %q", d.lives.asked)
	}
}

// closing is a client of a daemon that has 70 spans of it, and how it is closed.
func closing(t *testing.T, maxKept int) (d *fakeDaemon, c *Client, log *syncBuffer,
	end func(context.Context),
) {
	d, log = newFakeDaemon(t), &syncBuffer{}
	d.settles, d.lives = true, newLives(1)
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
		checkBooks(t, c, 70)
	}
}

func (d *fakeDaemon) isAsked() (is bool) {
	d.see(func() { is = d.flushes > 0 })
	return is
}

// TestCloseWaitsForTheOutcome asks for a report, and leaves when all is settled or a destination has not
// taken it, which is said.
func TestCloseWaitsForTheOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		answer    wire.Flush
		unsettled uint64
	}{
		"settled": {wire.Flush{OK: true}, 0},
		"refused": {wire.Flush{Error: "the agent is away"}, 70},
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
				t.Errorf("%d and %d byes, %d spans, the books: %+v", byes, d.byes, d.spans, s)
			}
			if said := strings.Contains(log.String(), "unsettled=70"); said != (test.unsettled > 0) {
				t.Errorf("it logs:\n%s", log)
			}
		})
	}
}

// TestCloseWaitsNoLongerThanItMay, which is as long as its context lasts, and some seconds at most.
func TestCloseWaitsNoLongerThanItMay(t *testing.T) {
	t.Run("some seconds", func(t *testing.T) {
		d, c, _, end := closing(t, 0)
		end(context.Background())
		if s := c.Stats(); s.Unsettled != 70 || !d.isAsked() || d.byes != 1 {
			t.Errorf("%d byes, the books: %+v", d.byes, s)
		}
	})
	t.Run("its context", func(t *testing.T) {
		d, c, _, end := closing(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		d.see(func() { d.answer = func(uint64) *wire.Flush { cancel(); return nil } })
		end(ctx)
		if s := c.Stats(); s.Unsettled != 70 {
			t.Errorf("the books: %+v", s)
		}
	})
	t.Run("nothing is kept", func(t *testing.T) {
		d, c, _, end := closing(t, KeepNothing)
		end(t.Context())
		if s := c.Stats(); s.Unsettled != 70 || d.isAsked() {
			t.Errorf("the books: %+v", s)
		}
	})
}

// TestADaemonDiesWhileTheClientCloses: if the next one is there already it is handed everything again,
// and if none is, that is said, as what was not seen settled.
func TestADaemonDiesWhileTheClientCloses(t *testing.T) {
	t.Run("the next is there", func(t *testing.T) {
		d, c, _, end := closing(t, 0)
		var dead *fakeConn
		d.see(func() {
			d.onFrame = func(f *fakeConn, kind wire.Type) {
				if kind == wire.TypeFlush && dead == nil {
					dead = f
					f.life.die()
					d.see(func() {
						d.answer = func(id uint64) *wire.Flush { return &wire.Flush{ID: id, OK: true} }
					})
					f.Close()
				}
			}
		})
		end(t.Context())
		d.stop()
		d.lives.isOrdered = false
		accepted := map[uint64]bool{}
		for number := range uint64(70) {
			accepted[number+1] = true
		}
		checkLives(t, d, c, accepted)
		if s := c.Stats(); s.Connects != 2 || s.Unconfirmed > 0 {
			t.Errorf("the books: %+v", s)
		}
	})
	t.Run("nobody is there", func(t *testing.T) {
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
			t.Errorf("the books: %+v; it logs:\n%s", s, log)
		}
	})
	t.Run("nobody is there any more", func(t *testing.T) {
		d, c, _, end := closing(t, 0)
		if err := c.Flush(canceledWhenAsked(t, d)); err == nil {
			t.Error("nobody answered, and the flush is well")
		}
		d.kill()
		eventually(t, "the client has seen it", func() bool { return !c.Stats().Connected })
		end(t.Context())
		if s := c.Stats(); s.Unsettled != 70 {
			t.Errorf("the books: %+v", s)
		}
	})
}

// canceledWhenAsked is a context that ends when the daemon is asked for a report.
func canceledWhenAsked(t *testing.T, d *fakeDaemon) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	d.see(func() { d.answer = func(uint64) *wire.Flush { cancel(); return nil } })
	return ctx
}
