package export

import (
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
	sealed, told := watched(testcycle.Spans(1))
	sealed.Cycle = number
	f.Accept(sealed)
	return told
}

// Published spans count as flushed, and waiting clients are answered. A cycle is settled by a
// complete scrape, and is in doubt during a scrape.
func TestWhatIsPublishedIsSettledWhenItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		f := startSeveral(t, Config{}, s)
		sealed, first := watched(testcycle.Spans(1))
		f.Accept(sealed)
		says(t, "it is published", first, "")
		if st := balanced(t, f.Destinations()[0], 1); st.Flushed != 1 || st.OldestAge != 0 {
			t.Errorf("%+v", st)
		}
		if err, resolved := resolution(sealed.Delivery); err != nil || !resolved {
			t.Errorf("delivery %v, resolved %v", err, resolved)
		}
		cut, whole := s.Begin(1), s.Begin(1)
		second := publish(f, 2)
		s.Begin(1)(false)
		says(t, "two are sent it", first, "doubtful")
		says(t, "and not the next", second, "")
		cut(false)
		says(t, "one is", first, "doubtful")
		again := s.Begin(2)
		whole(true)
		again(false)
		says(t, "one has it but for the answer's end", first, "doubtful")
		says(t, "a reader had nothing of the next", second, "doubtful clear")
		time.Sleep(tailTime)
		says(t, "it was read", first, "doubtful settled")
		says(t, "and the next was not", second, "doubtful clear")
		s.Begin(2)(true)
		time.Sleep(tailTime)
		says(t, "it was read", second, "doubtful clear doubtful settled")
		if len(s.open.statesUpTo(2)) != 0 {
			t.Error("what was read is kept")
		}
	})
}

// A scrape can contain a cycle that is still being encoded for other destinations.
func TestAReaderThatComesAtOnceMakesTheCycleDoubtful(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := &shelf{}, func(bool) {}
		s.onPublish = func(c *Cycle) { end = s.Begin(c.Cycle) }
		f := startSeveral(t, Config{}, s)
		told := publish(f, 1)
		says(t, "it reads", told, "doubtful")
		end(true)
		time.Sleep(tailTime)
		says(t, "it has read", told, "doubtful settled")
	})
}

// An incomplete scrape does not settle a cycle.
func TestAReaderThatIsCutOffClearsTheDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		f := startSeveral(t, Config{}, s)
		told := publish(f, 1)
		s.Begin(0)(true)
		says(t, "who came before it was there", told, "")
		s.Begin(1)(false)
		says(t, "cut off", told, "doubtful clear")
	})
}

// Without scrapes, cycles are settled after the retry age, so the number of open cycles is limited.
func TestWhatNobodyReadsIsSettledAfterTheRetryAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		f := startSeveral(t, Config{}, s)
		var all []*testcycle.Reports
		for number := range uint64(100) {
			all = append(all, publish(f, number))
			synctest.Wait()
			if n := len(s.open.statesUpTo(number)); n > int(DefaultRetryAge/testcycle.Width) {
				t.Fatalf("%d cycles are kept", n)
			}
			time.Sleep(testcycle.Width)
		}
		time.Sleep(DefaultRetryAge - testcycle.Width - 1)
		says(t, "before", all[99], "")
		time.Sleep(time.Nanosecond)
		for _, told := range all {
			says(t, "after", told, "settled")
		}
	})
}

// At shutdown all cycles are settled. Later scrapes change nothing.
func TestAStopSettlesWhatIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		f := startSeveral(t, Config{}, s)
		first, second := publish(f, 1), publish(f, 2)
		end := s.Begin(1)
		f.Close(t.Context())
		for range 2 {
			says(t, "a reader was sent it", first, "doubtful settled")
			says(t, "nobody was", second, "settled")
			end(true)
			end = func(bool) {}
			time.Sleep(2 * DefaultRetryAge)
		}
	})
}

// With a push destination as well, a cycle is settled after it was delivered and scraped.
func TestWhatIsPublishedAndSentIsSettledByBoth(t *testing.T) {
	for _, readFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, agent := &shelf{}, newSteered("agent")
			f := startSeveral(t, Config{}, s, agent)
			sealed, told := watched(testcycle.Origins(1))
			f.Accept(sealed)
			read := func() { s.Begin(sealed.Cycle)(true); time.Sleep(tailTime) }
			arrive := func() { agent.answers(t, "s0", Attempt{}) }
			first, last := arrive, read
			if readFirst {
				first, last = read, arrive
			}
			first()
			says(t, "one has it", told, "doubtful")
			last()
			says(t, "both have it", told, "doubtful settled")
		})
	}
}
