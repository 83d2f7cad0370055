package recovery

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// model records the cycle of each span, in the simplest form.
type model struct {
	rnd     *rand.Rand
	file    *File
	states  []cycleState // by cycle
	conns   map[*client]struct{}
	left    [receivers]map[uint64]uint64 // by receiver and cycle, spans that only the daemon has
	through uint64
}

type client struct {
	*SettlementTracker
	cycles []uint64 // by span
	token  string
}

// step does one random operation of a daemon.
func (m *model) step(t *testing.T) {
	now := uint64(len(m.states) - 1)
	switch m.rnd.IntN(9) {
	case 0:
		m.states = append(m.states, open)
		m.file.Begin(now + 1)
	case 1:
		if len(m.conns) < 4 {
			c := &client{SettlementTracker: NewSettlementTracker(m.file)}
			c.token = c.Token()
			m.conns[c] = struct{}{}
		}
	case 2, 3, 4:
		for c := range m.conns {
			c.EnterCycle(now)
			spans := m.rnd.Uint64N(5)
			c.Receive(spans)
			c.cycles = append(c.cycles, slices.Repeat([]uint64{now}, int(spans))...)
			break
		}
	case 5:
		door, spans := OTLP, m.rnd.Uint64N(5)
		m.file.Count(now, door, spans)
		m.left[door][now] += spans
	case 6: // a payload of a sealed cycle is sent, or certainly did not arrive
		if number := m.sealed(); m.states[number] < settled && number < now {
			m.states[number] ^= inDoubt
			m.file.SetInDoubt(number, m.states[number] == inDoubt)
		}
	case 7:
		if number := m.sealed(); number < now {
			m.states[number] = settled
			m.file.Settle(number)
			for m.states[m.through] == settled {
				m.through++
			}
			for c := range m.conns {
				if told := c.SettledUpTo(m.through); m.rnd.IntN(2) == 0 {
					m.check(t, c, told)
				}
			}
		}
	case 8:
		if len(m.conns) > 1 && m.rnd.IntN(4) == 0 {
			for c := range m.conns {
				for _, cycle := range c.cycles {
					m.left[Socket][cycle]++
				}
				c.Close()
				delete(m.conns, c)
				break
			}
		}
	}
}

func (m *model) sealed() uint64 { return m.rnd.Uint64N(uint64(len(m.states))) }

// check verifies the number of settled spans that a client gets against the cycles of its spans.
func (m *model) check(t *testing.T, c *client, told uint64) {
	t.Helper()
	for _, cycle := range c.cycles[:told] {
		if m.states[cycle] != settled {
			t.Fatalf("%d of %d spans are settled, and one lies in cycle %d", told, len(c.cycles), cycle)
		}
	}
}

// The next daemon returns the outcome of each span according to the state of its cycle. If a mark
// has cycles with different states, the outcome is doubtful. Spans that may have arrived are never
// resent, and undelivered spans are never settled.
func TestWhatADeadDaemonHasLeftIsWhatItDid(t *testing.T) {
	exact, all := 0, 0
	for seed := range uint64(100) {
		path := filepath.Join(t.TempDir(), "s")
		m := &model{
			rnd: rand.New(rand.NewPCG(seed, 34)), file: start(t, path, 0), states: []cycleState{open},
			conns: map[*client]struct{}{},
		}
		for door := range m.left {
			m.left[door] = map[uint64]uint64{}
		}
		m.file.Begin(0)
		for range m.rnd.IntN(400) {
			m.step(t)
		}
		kill(t, m.file)
		next := start(t, path, 1)
		if m.rnd.IntN(2) == 0 { // this daemon crashes as well, before a client reconnects
			kill(t, next)
			next = start(t, path, 1)
		}
		for c := range m.conns {
			says := next.Earlier(c.token)
			for span, cycle := range c.cycles {
				got, want := of(says, uint64(span)+1), outcomeOf[m.states[cycle]]
				if all++; got == want {
					exact++
				} else if got != wire.Doubtful {
					t.Fatalf("seed %d: span %d of cycle %d is %d, want %d: %d", seed, span, cycle, got, want,
						says)
				}
			}
		}
		if err := next.Remove(); err != nil {
			t.Error(err)
		}
	}
	if exact < all*9/10 {
		t.Errorf("%d of %d spans are said exactly", exact, all)
	}
}

// of returns the outcome of a span in a list.
func of(list []uint64, span uint64) wire.Outcome {
	for upTo, what := range wire.Outcomes(list) {
		if span <= upTo {
			return what
		}
	}
	return wire.Resend
}

// Lost spans are counted once, by receiver: acknowledged spans, spans of disconnected clients, and,
// after a while, those of clients that have not reconnected.
func TestLossesAreThoseThatNobodyHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		f := start(t, path, 0)
		begin := func(cycle, spans uint64, of ...*SettlementTracker) {
			f.Begin(cycle)
			for _, s := range of {
				s.EnterCycle(cycle)
				s.Receive(spans)
			}
		}
		gone, back, never := NewSettlementTracker(f), NewSettlementTracker(f), NewSettlementTracker(f)
		for cycle := range uint64(3) {
			begin(cycle, 10, gone, back, never)
			f.Count(cycle, APM, 100)
			f.Count(cycle, Zipkin, 1000)
		}
		f.Settle(0)
		f.SetInDoubt(1, true)
		gone.Close()
		token, late := back.Token(), never.Token()
		kill(t, f)
		next := start(t, path, 1)
		defer func() { _ = next.Remove() }()
		want := func(socket Loss, awaited uint64) {
			t.Helper()
			got := next.Losses()
			if got.Receivers["socket"] != socket || got.Awaited != awaited ||
				got.Receivers["apm"] != (Loss{100, 100}) || got.Receivers["zipkin"] != (Loss{1000, 1000}) ||
				got.Receivers["otlp"] != (Loss{}) || got.Unknown != 0 {
				t.Errorf("lost %+v, want of the socket %+v, awaited %d", got, socket, awaited)
			}
		}
		want(Loss{10, 10}, 40)
		if says := fmt.Sprint(next.Earlier(token)); says != "[0 0 10 0 20 1 30 2]" {
			t.Error(says)
		}
		want(Loss{10, 10}, 20)
		time.Sleep(comesBack)
		want(Loss{20, 20}, 0)
		// too late: the spans count as lost
		if says := fmt.Sprint(next.Earlier(late)); says != "[0 0 10 0 20 1 30 2]" {
			t.Error(says)
		}
		want(Loss{20, 20}, 0)
		later := start(t, path, 0)
		if all := later.Losses(); all.Awaited != 0 || all.Receivers["apm"] != (Loss{}) {
			t.Errorf("another daemon counts them again: %+v", all)
		}
		_ = later.Remove()
	})
}

// If a file has another layout, is truncated or empty, the daemon starts and counts a crash with
// unknown losses.
func TestAFileThatSaysNothingIsSaid(t *testing.T) {
	for name, change := range map[string]func(name string) error{
		"cut short":         func(name string) error { return os.Truncate(name, 4000) },
		"empty":             func(name string) error { return os.Truncate(name, 0) },
		"of another layout": func(name string) error { return overwrite(name, 0, "another ") },
		"of many records": func(name string) error {
			return overwrite(name, 8, "\xff\xff\xff\xff\xff\xff\xff\x7f")
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			f := start(t, path, 0)
			token := NewSettlementTracker(f).Token()
			kill(t, f)
			if err := change(f.file.Name()); err != nil {
				t.Fatal(err)
			}
			next := start(t, path, 1)
			if got := next.Losses(); got.Unknown != 1 {
				t.Errorf("lost %+v", got)
			}
			if says := next.Earlier(token); of(says, 1) != wire.Doubtful || of(says, 1<<40) != wire.Doubtful {
				t.Errorf("of a connection of which nobody knows it says %d", says)
			}
			if err := next.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
}

func overwrite(name string, at int64, with string) error {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteAt([]byte(with), at)
	return err
}

// Reading a file with random words ends, and the outcomes are in order.
func FuzzDamagedFile(f *testing.F) {
	f.Add(uint64(1), 5)
	f.Fuzz(func(t *testing.T, seed uint64, damages int) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		file, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		l := new(layout)
		l.magic.Store(magic)
		l.records.Store(2)
		words := append(bytes.Clone(bytesOf(l)), make([]byte, 2*recordBytes)...)
		for range min(damages, 1000) {
			binary.NativeEndian.PutUint64(words[8*rnd.IntN(len(words)/8):], rnd.Uint64()>>rnd.IntN(64))
		}
		if _, err := file.WriteAt(words, 0); err != nil {
			t.Fatal(err)
		}
		d := &Predecessor{isBack: make([]bool, 2)}
		if d.layout, d.records = contents(file); d.layout == nil {
			return
		}
		for _, r := range d.records {
			before := uint64(0)
			for upTo := range wire.Outcomes(d.outcomes(r)) {
				if upTo < before {
					t.Fatalf("up to %d after %d", upTo, before)
				}
				before = upTo
			}
		}
		d.addCycleLosses(&[receivers]Loss{})
		d.clientLoss()
	})
}

// An unknown token has no outcomes. A token of this daemon itself has settled ones.
func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f := start(t, path, 0)
	s := NewSettlementTracker(f)
	if got := of(f.Earlier(s.Token()), 1<<40); got != wire.Settled {
		t.Errorf("a connection of a daemon that lives is %d", got)
	}
	if len(s.Token()) > wire.MaxToken {
		t.Errorf("a token has %d bytes", len(s.Token()))
	}
	for _, token := range []string{
		"", "-", "a", f.name(), f.name() + "-", f.name() + "-0", "-1", "x-1",
		f.name() + "-zz",
	} {
		if got := f.Earlier(token); got != nil {
			t.Errorf("%q is answered by %d", token, got)
		}
	}
	var nobody *File
	if nobody.Earlier(s.Token()) != nil || NewSettlementTracker(nobody).Token() != "" {
		t.Error("a daemon without a file has a token")
	}
	all := []*SettlementTracker{s}
	for range 3 {
		all = append(all, NewSettlementTracker(f))
	}
	if NewSettlementTracker(f).Token() != "" {
		t.Error("a connection that found no room has a token")
	}
	before := all[2].Token()
	all[2].Receive(7)
	all[2].Close()
	if again := NewSettlementTracker(f); again.Token() == "" || again.Token() == before || again.Received() != 0 ||
		all[2].Received() != 7 || all[2].SettledUpTo(1<<50) != 0 {
		t.Errorf("the room of one that left is %q with %d", again.Token(), again.Received())
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
}

// Reported files are kept for a while, up to a limit, and then removed.
func TestFilesThatWereReadAreForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	var tokens []string
	for i := range mostKept + 3 {
		f := start(t, path, min(i, 1))
		tokens = append(tokens, NewSettlementTracker(f).Token())
		kill(t, f)
	}
	old, err := filepath.Glob(path + "*" + readSuffix)
	if err != nil || len(old) != mostKept {
		t.Fatalf("%d files are kept: %v", len(old), err)
	}
	last := start(t, path, 1)
	if last.Earlier(tokens[len(tokens)-1]) == nil || last.Earlier(tokens[0]) != nil {
		t.Error("the newest is not known, or the oldest is")
	}
	for _, name := range old {
		_ = os.Chtimes(name, time.Time{}, time.Now().Add(-keptFor))
	}
	if err := last.Remove(); err != nil {
		t.Error(err)
	}
	if err := start(t, path, 0).Remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%v is left, want the one that was read last", left)
	}
}

// Spans of a disconnected client are counted in an unsettled cycle.
func TestWhatIsLeftBehindLiesWhereItIsNotSettled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f := start(t, path, 0)
	s := NewSettlementTracker(f)
	for cycle := range uint64(marks + 3) { // the last mark covers several
		f.Begin(cycle)
		s.EnterCycle(cycle)
		s.Receive(1)
	}
	for cycle := range uint64(marks + 3) {
		if cycle != marks {
			f.Settle(cycle)
		}
	}
	s.Close()
	kill(t, f)
	next := start(t, path, 1)
	defer func() { _ = next.Remove() }()
	if lost := next.Losses().Receivers["socket"]; lost.Lost != 3 {
		t.Errorf("lost %+v, want the 3 of the last mark", lost)
	}
}

// Later cycles reuse the slots of earlier ones. Unsettled spans of such a cycle count as lost, and
// no later call makes them count twice.
func TestACycleThatLostItsPlaceIsCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f := start(t, path, 0)
	s := NewSettlementTracker(f)
	for cycle := range uint64(mostCycles + 2) {
		f.Begin(cycle)
		f.Count(cycle, OTLP, 1+cycle)
		if s.EnterCycle(cycle); cycle == 0 {
			s.Receive(5)
		}
		if cycle > 0 {
			f.Settle(cycle)
		}
	}
	f.Settle(0) // too late
	f.Count(0, OTLP, 100)
	f.SetInDoubt(1, true)
	token := s.Token()
	kill(t, f)
	next := start(t, path, 1)
	defer func() { _ = next.Remove() }()
	if lost := next.Losses().Receivers["otlp"]; lost != (Loss{Lost: 1}) {
		t.Errorf("lost %+v, want the one of the first cycle", lost)
	}
	if got := of(next.Earlier(token), 5); got != wire.Doubtful {
		t.Errorf("a span of it is %d", got)
	}
}

// Records of connections that the daemon itself closes stay, so that their clients can ask the next
// daemon about their spans if this one is killed during shutdown. Clients that disconnected earlier
// have nothing to resend.
func TestWhoSaidByeCanBeAskedAbout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f := start(t, path, 0)
	hadLeft, stays := NewSettlementTracker(f), NewSettlementTracker(f)
	tokens := [2]string{hadLeft.Token(), stays.Token()}
	for cycle := range uint64(3) {
		f.Begin(cycle)
		hadLeft.EnterCycle(cycle)
		hadLeft.Receive(5)
		stays.EnterCycle(cycle)
		stays.Receive(7)
	}
	f.Settle(0)
	hadLeft.Close()
	f.SetStopping()
	stays.Close()
	f.SetInDoubt(1, true)
	kill(t, f)
	next := start(t, path, 1)
	defer func() { _ = next.Remove() }()
	all := next.Losses()
	if want := (Loss{Lost: 5, Ambiguous: 5}); all.Receivers["socket"] != want || all.Awaited != 14 {
		t.Errorf("before anybody is back it says %+v", all)
	}
	if says := next.Earlier(tokens[0]); says != nil {
		t.Errorf("of who had left it says %d", says)
	}
	want := []uint64{
		0, uint64(wire.Settled), 7, uint64(wire.Settled), 14, uint64(wire.Doubtful), 21,
		uint64(wire.Resend),
	}
	if says := next.Earlier(tokens[1]); !slices.Equal(says, want) {
		t.Errorf("of who heard a bye it says %d, want %d", says, want)
	}
	if left := next.Losses().Awaited; left != 0 {
		t.Errorf("%d spans are awaited of who is back", left)
	}
}
