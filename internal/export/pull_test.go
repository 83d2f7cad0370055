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

// publish has a numbered cycle accepted and returns what is told of it.
func publish(f *Flusher, number uint64) *testcycle.Reports {
	sealed, told := watched(testcycle.Spans(1))
	sealed.Cycle = number
	f.Accept(sealed)
	return told
}

// What is published is flushed, and who waits is answered; it is settled when a reader had it
// whole, and doubtful while one is sent it.
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

// A scrape may have a cycle that is still being encoded for other destinations.
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

// A reader that is cut off has nothing.
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

// What nobody reads is settled after the retry age, so that no list grows.
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

// At a stop all is settled, and what a reader has of it afterwards changes nothing.
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

// What is sent elsewhere too is settled when it has arrived there and was read.
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
