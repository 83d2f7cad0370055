package post_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// A server that answers /info but hangs before the body of a payload never gets a body, however
// often a payload or a probe is sent. So each payload can be retried. It makes no difference
// whether the server has requested bodies before.
func TestExpect_HangingServerGetsNoBody(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]conduct{"from the start": hangs, "after it asked": takes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, before, func(t *testing.T, s *server, p *post.Poster) {
				accepted := 0
				if before == takes {
					mustPost(t, p, export.OutcomeAccepted)
					accepted = 1
				}
				s.becomes(hangs)
				for range 3 {
					if got := p.Get(t.Context(), "/what", 1); got.Err != nil {
						t.Fatal(got.Err)
					}
					mustPost(t, p, export.OutcomeNotYet)
				}
				s.becomes(takes)
				mustPost(t, p, export.OutcomeAccepted)
				if s.payloads() != accepted+1 {
					t.Errorf("%d payloads read, want %d", s.payloads(), accepted+1)
				}
			})
		})
	}
}

// A server that requests the body too late for its response gets no body, so no payload becomes
// ambiguous.
func TestExpect_LateRequestGetsNoBody(t *testing.T) {
	t.Parallel()
	onBoth(t, takes, func(t *testing.T, s *server, p *post.Poster) {
		mustPost(t, p, export.OutcomeAccepted)
		s.becomes(conduct{asks: true, waits: shortPatience * 9 / 2})
		mustPost(t, p, export.OutcomeNotYet)
		s.becomes(takes)
		mustPost(t, p, export.OutcomeAccepted)
		if s.payloads() != 2 {
			t.Errorf("%d payloads read, want the two that were asked for in time", s.payloads())
		}
	})
}

// exporter is a minimal exporter: an encoding and a poster.
type exporter struct{ *post.Poster }

func (exporter) Encode(c *export.Cycle, emit func(*export.Payload)) (made export.Encoded) {
	for i := range c.Rows {
		emit(&export.Payload{
			Origin: c.Origins[c.Rows[i].Origin()], Body: make([]byte, small), Spans: c.Rows[i].Spans,
		})
	}
	return made
}

func (x exporter) Deliver(ctx context.Context, p *export.Payload) export.Attempt {
	return x.Post(ctx, nil, p.Body).Attempt
}

// With such a destination, no spans are counted as ambiguous. Payloads wait until they expire,
// or until the destination accepts bodies.
func TestExpect_UnreadIsNotAmbiguous(t *testing.T) {
	t.Parallel()
	onBoth(t, hangs, func(t *testing.T, s *server, p *post.Poster) {
		f, err := export.New(export.Config{Timeout: 6 * shortPatience, RetryAge: 3 * time.Second},
			export.Exporter{Name: "server", Push: exporter{p}})
		if err != nil {
			t.Fatal(err)
		}
		d := f.Destinations()[0]
		f.Accept(testcycle.Origins(40))
		eventually.True(t, "the first to expire", func() bool { return d.Stats().Unsent[export.Expired] > 0 })
		s.becomes(takes)
		f.Accept(testcycle.Origins(40))
		eventually.True(t, "all to have an outcome", func() bool { return d.Stats().Pending == 0 })
		f.Close(t.Context())
		if s := d.Stats(); s.Unsent[export.Ambiguous] != 0 || s.Unsent[export.Expired]+s.Flushed != 80 ||
			s.Flushed < 40 {
			t.Errorf("stats %+v", s)
		}
	})
}

// A proxy that never requests a body gets every payload. Only the first one is delayed.
func TestExpect_NeverRequestedGetsEverything(t *testing.T) {
	t.Parallel()
	onBoth(t, neverAsks, func(t *testing.T, s *server, p *post.Poster) {
		for range 5 {
			mustPost(t, p, export.OutcomeAccepted)
		}
		if s.payloads() != 5 || len(s.bodies) != 6 || slices.Contains(s.expects[len(s.expects)-5:], true) {
			t.Errorf("bodies of %v bytes, want five payloads and one probe; asked for %v", s.bodies,
				s.expects)
		}
	})
}

// A destination that reads a payload and never answers gets one payload, which is ambiguous. The
// next one is sent after a probe was answered, whether or not the destination requests bodies.
func TestExpect_ProbesAfterNoResponse(t *testing.T) {
	t.Parallel()
	for name, well := range map[string]conduct{"asks": takes, "never asks": neverAsks} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, well, func(t *testing.T, s *server, p *post.Poster) {
				steps := []struct {
					conduct
					want export.Outcome
				}{{well, export.OutcomeAccepted}, {
					conduct{asks: well.asks},
					export.OutcomeUnknown,
				}, {conduct{asks: well.asks}, export.OutcomeNotYet}, {hangs, export.OutcomeNotYet}, {well, export.OutcomeAccepted}}
				for _, step := range steps {
					s.becomes(step.conduct)
					mustPost(t, p, step.want)
				}
				if s.payloads() != 3 {
					t.Errorf("%d payloads read, want 3", s.payloads())
				}
			})
		})
	}
}

// A destination that requests bodies later than ContinueTimeout is not mistaken for one that never
// does.
func TestExpect_SlowRequestIsAwaited(t *testing.T) {
	t.Parallel()
	onBoth(t, isSlow, func(t *testing.T, s *server, p *post.Poster) {
		for range 2 {
			mustPost(t, p, export.OutcomeAccepted)
		}
		if s.payloads() != 2 || slices.Contains(s.expects, false) {
			t.Errorf("%d payloads were read, requests waited to be asked: %v", s.payloads(), s.expects)
		}
	})
}

// Another server at the same address is recognized without a lost payload. Its first payload can
// wait for a retry, if its time ends before the probe is answered.
func TestExpect_OtherServerAtAddress(t *testing.T) {
	t.Parallel()
	onBoth(t, takes, func(t *testing.T, s *server, p *post.Poster) {
		mustPost(t, p, export.OutcomeAccepted)
		s.becomes(neverAsks)
		ctx, cancel := context.WithTimeout(t.Context(), 6*shortPatience)
		defer cancel()
		got := p.Post(ctx, nil, make([]byte, small))
		if got.Outcome != export.OutcomeAccepted && got.Outcome != export.OutcomeNotYet {
			t.Errorf("%+v, want it accepted or not yet", got)
		}
		for _, now := range []conduct{neverAsks, takes, takes} {
			s.becomes(now)
			mustPost(t, p, export.OutcomeAccepted)
		}
	})
}
