package export

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// shelf is a destination that tests scrape.
type shelf struct {
	Scrapes
	onPublish func(*Cycle)
}

func (s *shelf) describe() Exporter {
	return Exporter{Name: "shelf", Pull: &Pull{Scrapes: &s.Scrapes, Publish: func(c *Cycle) Encoded {
		if s.onPublish != nil {
			s.onPublish(c)
		}
		return Encoded{}
	}}}
}

// publish accepts a cycle with a number, and returns its reports.
func publish(f *Flusher, number uint64) *testcycle.Reports {
	sealed, reports := watch(testcycle.Spans(1))
	sealed.Cycle = number
	f.Accept(sealed)
	return reports
}

// Clients that wait for a published cycle are answered. Its spans count as flushed, and the cycle is
// settled, after a complete scrape. It is in doubt during a scrape.
func TestPull_ScrapeSettlesCycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		f := startSeveral(t, Config{}, s)
		sealed, first := watch(testcycle.Spans(1))
		f.Accept(sealed)
		wantReports(t, "it is published", first, "")
		if st := balanced(t, f.Destinations()[0], 1); st.Flushed != 0 || st.Pending != 1 || st.OldestAge != 0 {
			t.Errorf("%+v", st)
		}
		if err, resolved := resolution(sealed.Delivery); err != nil || !resolved {
			t.Errorf("delivery %v, resolved %v", err, resolved)
		}
		cut, complete := s.Begin(1), s.Begin(1)
		second := publish(f, 2)
		s.Begin(1)(false)
		wantReports(t, "two scrapes read it", first, "doubtful")
		wantReports(t, "no scrape reads the next cycle", second, "")
		cut(false)
		wantReports(t, "one scrape reads it", first, "doubtful")
		again := s.Begin(2)
		complete(true)
		again(false)
		wantReports(t, "before the settle delay has passed", first, "doubtful")
		wantReports(t, "the scrape of the next cycle was incomplete", second, "doubtful clear")
		time.Sleep(settleDelay)
		wantReports(t, "a scrape was complete", first, "doubtful settled")
		wantReports(t, "no scrape of the next cycle was complete", second, "doubtful clear")
		s.Begin(2)(true)
		time.Sleep(settleDelay)
		wantReports(t, "a scrape was complete", second, "doubtful clear doubtful settled")
		if st := balanced(t, f.Destinations()[0], 2); st.Flushed != 2 || s.unscraped.hasAny() {
			t.Errorf("after both scrapes: %+v", st)
		}
	})
}

// A scrape can contain a cycle that is still being encoded for other destinations.
func TestPull_ScrapeDuringEncodingIsInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := &shelf{}, func(bool) {}
		s.onPublish = func(c *Cycle) { end = s.Begin(c.Cycle) }
		f := startSeveral(t, Config{}, s)
		reports := publish(f, 1)
		wantReports(t, "a scrape is in flight", reports, "doubtful")
		end(true)
		time.Sleep(settleDelay)
		wantReports(t, "the scrape is complete", reports, "doubtful settled")
	})
}

// An incomplete scrape does not settle a cycle.
func TestPull_IncompleteScrapeClearsDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		f := startSeveral(t, Config{}, s)
		reports := publish(f, 1)
		s.Begin(0)(true)
		wantReports(t, "a scrape without the cycle", reports, "")
		s.Begin(1)(false)
		wantReports(t, "an incomplete scrape", reports, "doubtful clear")
	})
}

// Without scrapes, clients are notified after the retry age that a cycle is settled. Its spans stay
// pending, and a later scrape still delivers them. The number of tracked cycles is limited.
func TestPull_NotScrapedWithinRetryAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		f := startSeveral(t, Config{}, s)
		var all []*testcycle.Reports
		for number := range uint64(100) {
			all = append(all, publish(f, number))
			synctest.Wait()
			time.Sleep(testcycle.Width)
		}
		time.Sleep(DefaultRetryAge - testcycle.Width - 1)
		wantReports(t, "before the retry age", all[99], "")
		time.Sleep(time.Nanosecond)
		for _, reports := range all {
			wantReports(t, "after the retry age", reports, "settled")
		}
		for number := range uint64(maxUnscraped) {
			publish(f, 100+number)
		}
		if n := len(s.unscraped.statesUpTo(1 << 20)); n != maxUnscraped {
			t.Errorf("%d cycles are tracked", n)
		}
		spans := uint64(100 + maxUnscraped)
		if st := balanced(t, f.Destinations()[0], spans); st.Pending != spans {
			t.Errorf("not scraped: %+v", st)
		}
		s.Begin(100 + maxUnscraped)(true)
		time.Sleep(settleDelay)
		synctest.Wait()
		if st := balanced(t, f.Destinations()[0], spans); st.Flushed != spans {
			t.Errorf("scraped late: %+v", st)
		}
	})
}

// At shutdown, the spans that no complete scrape contains are unsent. If nothing has ever scraped, the
// shutdown does not wait.
func TestPull_ShutdownBeforeAnyScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		f := startSeveral(t, Config{}, s)
		first, second := publish(f, 1), publish(f, 2)
		end := s.Begin(1)
		f.Close(t.Context())
		for range 2 {
			wantReports(t, "a scrape was in flight", first, "doubtful settled")
			wantReports(t, "no scrape was", second, "settled")
			if st := balanced(t, f.Destinations()[0], 2); st.Unsent[Shutdown] != 2 {
				t.Errorf("%+v", st)
			}
			end(true)
			end = func(bool) {}
			time.Sleep(2 * DefaultRetryAge)
		}
	})
}

// A shutdown waits, at most for the grace period, until a scrape contains the last cycle.
func TestPull_ShutdownWaitsForScrape(t *testing.T) {
	for name, test := range map[string]struct {
		scrapeAfter time.Duration
		takes       time.Duration
		flushed     uint64
	}{
		"scraped in time":    {2 * time.Second, 3 * time.Second, 2},
		"scraped at the end": {4500 * time.Millisecond, 5 * time.Second, 2},
		"not scraped":        {time.Minute, 5 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{}
				f := startSeveral(t, Config{}, s)
				publish(f, 1)
				s.Begin(1)(true)
				time.Sleep(settleDelay)
				synctest.Wait()
				publish(f, 2)
				time.AfterFunc(test.scrapeAfter, func() { s.Begin(2)(true) })
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				f.Close(ctx)
				st := balanced(t, f.Destinations()[0], 2)
				if took := time.Since(began); took != test.takes || st.Flushed != test.flushed ||
					st.Unsent[Shutdown] != 2-test.flushed {
					t.Errorf("after %v: %+v", took, st)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

// With a push destination as well, a cycle is settled after it was delivered and scraped.
func TestPull_SettledAfterPushAndScrape(t *testing.T) {
	for _, readFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, agent := &shelf{}, newManual("agent")
			f := startSeveral(t, Config{}, s, agent)
			sealed, reports := watch(testcycle.Origins(1))
			f.Accept(sealed)
			read := func() { s.Begin(sealed.Cycle)(true); time.Sleep(settleDelay) }
			arrive := func() { agent.respond(t, "s0", Attempt{}) }
			first, last := arrive, read
			if readFirst {
				first, last = read, arrive
			}
			first()
			wantReports(t, "one destination has it", reports, "doubtful")
			last()
			wantReports(t, "both destinations have it", reports, "doubtful settled")
		})
	}
}
