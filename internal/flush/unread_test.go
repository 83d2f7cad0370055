package flush

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/flush/testcycle"
)

// shelf is a destination from which is fetched what a test fetches.
type shelf struct {
	*scripted
	unread Unread
}

func (s *shelf) Unread() *Unread { return &s.unread }

// publish has a numbered cycle accepted and returns what is told of it.
func publish(f running, number uint64) *testcycle.Told {
	sealed, told := watched(testcycle.Spans(1))
	sealed.Cycle = number
	f.Accept(sealed)
	return told
}

// What is published is flushed, and who waits is answered; it is settled when a reader had it
// whole, and doubtful while one is sent it.
func TestWhatIsPublishedIsSettledWhenItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{scripted: &scripted{}}
		f, _ := startScripted(t, s, nil)
		sealed, first := watched(testcycle.Spans(1))
		f.Accept(sealed)
		says(t, "it is published", first, "")
		if st := balanced(t, f, 1); st.Flushed != 1 || st.OldestAge != 0 {
			t.Errorf("%+v", st)
		}
		if err, resolved := resolution(sealed.Delivery); err != nil || !resolved {
			t.Errorf("delivery %v, resolved %v", err, resolved)
		}
		cut, whole := s.unread.Begin(1), s.unread.Begin(1)
		second := publish(f, 2)
		s.unread.Begin(1)(false)
		says(t, "two are sent it", first, "doubtful")
		says(t, "and not the next", second, "")
		cut(false)
		says(t, "one is", first, "doubtful")
		again := s.unread.Begin(2)
		whole(true)
		again(false)
		says(t, "one has it but for the answer's end", first, "doubtful")
		says(t, "a reader had nothing of the next", second, "doubtful clear")
		time.Sleep(tailTime)
		says(t, "it was read", first, "doubtful settled")
		says(t, "and the next was not", second, "doubtful clear")
		s.unread.Begin(2)(true)
		time.Sleep(tailTime)
		says(t, "it was read", second, "doubtful clear doubtful settled")
		if len(s.unread.copies.saidBy(2)) != 0 {
			t.Error("what was read is kept")
		}
	})
}

// hasty is a shelf with a reader who comes as soon as something is published.
type hasty struct {
	*shelf
	end func(isWhole bool)
}

func (h *hasty) Encode(sealed *aggregate.Sealed, rows []Row, limit int, emit func(*Payload)) Encoded {
	h.end = h.unread.Begin(sealed.Cycle)
	return h.scripted.Encode(sealed, rows, limit, emit)
}

// A reader may have a cycle that is still being encoded for others.
func TestAReaderThatComesAtOnceMakesTheCycleDoubtful(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hasty{shelf: &shelf{scripted: &scripted{}}}
		f, _ := startScripted(t, h, nil)
		told := publish(f, 1)
		says(t, "it reads", told, "doubtful")
		h.end(true)
		time.Sleep(tailTime)
		says(t, "it has read", told, "doubtful settled")
	})
}

// A reader that is cut off has nothing.
func TestAReaderThatIsCutOffClearsTheDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{scripted: &scripted{}}
		f, _ := startScripted(t, s, nil)
		told := publish(f, 1)
		s.unread.Begin(0)(true)
		says(t, "who came before it was there", told, "")
		s.unread.Begin(1)(false)
		says(t, "cut off", told, "doubtful clear")
	})
}

// What nobody reads is settled after the retry age, so that no list grows.
func TestWhatNobodyReadsIsSettledAfterTheRetryAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{scripted: &scripted{}}
		f, _ := startScripted(t, s, nil)
		var all []*testcycle.Told
		for number := range uint64(100) {
			all = append(all, publish(f, number))
			synctest.Wait()
			if n := len(s.unread.copies.saidBy(number)); n > int(DefaultRetryAge/testcycle.Width) {
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
		s := &shelf{scripted: &scripted{}}
		f, _ := startScripted(t, s, nil)
		first, second := publish(f, 1), publish(f, 2)
		end := s.unread.Begin(1)
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
			s, agent := &shelf{scripted: &scripted{name: "shelf"}}, newSteered("agent")
			f := startSeveral(t, Config{}, s, agent)
			sealed, told := watched(testcycle.Origins(1))
			f.Accept(sealed)
			read := func() { s.unread.Begin(sealed.Cycle)(true); time.Sleep(tailTime) }
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
