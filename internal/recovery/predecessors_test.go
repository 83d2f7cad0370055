package recovery

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
		m.states = append(m.states, stateOpen)
		m.file.BeginCycle(now + 1)
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
		receiver, spans := OTLP, m.rnd.Uint64N(5)
		m.file.Count(now, receiver, spans)
		m.left[receiver][now] += spans
	case 6: // a payload of a sealed cycle is sent, or certainly did not arrive
		if number := m.sealed(); m.states[number] < stateSettled && number < now {
			m.states[number] ^= stateInDoubt
			m.file.SetInDoubt(number, m.states[number] == stateInDoubt)
		}
	case 7:
		if number := m.sealed(); number < now {
			m.states[number] = stateSettled
			m.file.Settle(number)
			for m.states[m.through] == stateSettled {
				m.through++
			}
			for c := range m.conns {
				if count := c.SettleBefore(m.through); m.rnd.IntN(2) == 0 {
					m.check(t, c, count)
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
func (m *model) check(t *testing.T, c *client, count uint64) {
	t.Helper()
	for _, cycle := range c.cycles[:count] {
		if m.states[cycle] != stateSettled {
			t.Fatalf("%d of %d spans are settled, but one is in unsettled cycle %d", count, len(c.cycles), cycle)
		}
	}
}

// The next daemon returns the outcome of each span according to the state of its cycle. If a mark
// has cycles with different states, the outcome is doubtful. Spans that may have arrived are never
// resent, and undelivered spans are never settled.
func TestOutcomes_AfterCrash(t *testing.T) {
	exact, all := 0, 0
	for seed := range uint64(100) {
		path := filepath.Join(t.TempDir(), "s")
		m := &model{
			rnd: rand.New(rand.NewPCG(seed, 34)), file: start(t, path, 0), states: []cycleState{stateOpen},
			conns: map[*client]struct{}{},
		}
		for receiver := range m.left {
			m.left[receiver] = map[uint64]uint64{}
		}
		m.file.BeginCycle(0)
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
			outcomes, _ := next.OutcomesOf(c.token)
			for span, cycle := range c.cycles {
				got, want := of(outcomes, uint64(span)+1), outcomeOf[m.states[cycle]]
				if all++; got == want {
					exact++
				} else if got != wire.Ambiguous {
					t.Fatalf("seed %d: span %d of cycle %d is %d, want %d: %d", seed, span, cycle, got, want,
						outcomes)
				}
			}
		}
		if err := next.Remove(); err != nil {
			t.Error(err)
		}
	}
	if exact < all*9/10 {
		t.Errorf("%d of %d spans have the exact outcome", exact, all)
	}
}

// of returns the outcome of a span in a list.
func of(list []uint64, span uint64) wire.Outcome {
	for upTo, outcome := range wire.Outcomes(list) {
		if span <= upTo {
			return outcome
		}
	}
	return wire.Resend
}

// Lost spans are counted once, by receiver: acknowledged spans, spans of disconnected clients, and,
// after a while, those of clients that have not reconnected.
func TestLosses_CountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		f := start(t, path, 0)
		begin := func(cycle, spans uint64, of ...*SettlementTracker) {
			f.BeginCycle(cycle)
			for _, s := range of {
				s.EnterCycle(cycle)
				s.Receive(spans)
			}
		}
		disconnected, returned, absent := NewSettlementTracker(f), NewSettlementTracker(f), NewSettlementTracker(f)
		for cycle := range uint64(3) {
			begin(cycle, 10, disconnected, returned, absent)
			f.Count(cycle, APM, 100)
			f.Count(cycle, Zipkin, 1000)
		}
		f.Settle(0)
		f.SetInDoubt(1, true)
		disconnected.Close()
		token, late := returned.Token(), absent.Token()
		kill(t, f)
		next := start(t, path, 1)
		defer func() { _ = next.Remove() }()
		want := func(socket Loss, awaited uint64) {
			t.Helper()
			got := next.Losses()
			if got.Receivers["socket"] != socket || got.Awaited != awaited ||
				got.Receivers["apm"] != (Loss{100, 100}) || got.Receivers["zipkin"] != (Loss{1000, 1000}) ||
				got.Receivers["otlp"] != (Loss{}) || got.Unknown != 0 {
				t.Errorf("lost %+v, want %+v from the socket, awaited %d", got, socket, awaited)
			}
		}
		want(Loss{10, 10}, 40)
		if outcomes := outcomesOf(next, token); outcomes != "[0 0 10 0 20 1 30 2]" {
			t.Error(outcomes)
		}
		want(Loss{10, 10}, 20)
		time.Sleep(reconnectTimeout + scanInterval)
		next.ReportCrashes()
		want(Loss{20, 20}, 0)
		// too late: the spans count as lost, so the client must not resend them
		if outcomes := outcomesOf(next, late); outcomes != "[30 0]" {
			t.Error(outcomes)
		}
		want(Loss{20, 20}, 0)
		next.predecessors.recordReports()
		later := start(t, path, 0)
		if all := later.Losses(); all.Awaited != 0 || all.Receivers["apm"] != (Loss{}) {
			t.Errorf("another daemon counts the losses again: %+v", all)
		}
		_ = later.Remove()
	})
}

// outcomesOf returns the outcomes of a connection as text.
func outcomesOf(f *File, token string) string {
	outcomes, isPending := f.OutcomesOf(token)
	if isPending {
		return "pending"
	}
	return fmt.Sprint(outcomes)
}

// If a file has another layout, is truncated or empty, the daemon starts and counts a crash with
// unknown losses.
func TestFile_UnreadableCountsAsCrash(t *testing.T) {
	for name, change := range map[string]func(name string) error{
		"truncated":      func(name string) error { return os.Truncate(name, 4000) },
		"empty":          func(name string) error { return os.Truncate(name, 0) },
		"another layout": func(name string) error { return overwrite(name, 0, "another ") },
		"garbage after the header": func(name string) error {
			return overwrite(name, headerBytes, strings.Repeat("\xff\xff\xff\xff\xff\xff\xff\xff", 1000))
		},
		"garbage in the records": func(name string) error {
			return overwrite(name, recordsOffset, strings.Repeat("\xff", recordBytes))
		},
		"an impossible number of ranges": func(name string) error {
			return overwrite(name, recordsOffset+5*wordBytes, "\xff\xff\xff\xff\xff\xff\xff\x7f")
		},
		"too many records": func(name string) error {
			return overwrite(name, 8, "\xff\xff\xff\xff\xff\xff\xff\x7f")
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			f := start(t, path, 0)
			token := NewSettlementTracker(f).Token()
			kill(t, f)
			if err := change(pathOf(f)); err != nil {
				t.Fatal(err)
			}
			next := start(t, path, 1)
			if got := next.Losses(); got.Unknown != 1 || got.Sum() != (Loss{}) || got.Awaited != 0 {
				t.Errorf("lost %+v", got)
			}
			if outcomes, _ := next.OutcomesOf(token); of(outcomes, 1) != wire.Ambiguous || of(outcomes, 1<<40) != wire.Ambiguous {
				t.Errorf("an unknown connection has the outcomes %d", outcomes)
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
		words := make([]byte, Bytes(2))
		copy(words, appendWords(nil, magic, 2))
		for slot := range 2 {
			r := record{
				id: 1, received: 9, settled: 2, cyclePlusOne: 3, count: 1, ranges: [rangesPerRecord]spanRange{{firstCycle: 1, lastCycle: 1, lastSpan: 5}},
			}
			copy(words[recordOffset(slot):], r.appendTo(nil))
		}
		for range min(damages, 1000) {
			at := wordBytes * rnd.IntN(len(words)/wordBytes)
			if rnd.IntN(2) == 0 {
				at = int(recordOffset(0)) + at%(2*recordBytes)
			}
			binary.NativeEndian.PutUint64(words[at:], rnd.Uint64()>>rnd.IntN(64))
		}
		if _, err := file.WriteAt(words, 0); err != nil {
			t.Fatal(err)
		}
		d := &predecessor{file: file, size: int64(len(words))}
		if d.read() != nil {
			return
		}
		var c contents
		err = errors.Join(c.read(file, d.size), c.eachRecord(file, func(_ int, r *record) error {
			before := uint64(0)
			for upTo := range wire.Outcomes(c.outcomes(r)) {
				if upTo < before {
					t.Fatalf("up to %d after %d", upTo, before)
				}
				before = upTo
			}
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		const most = 2 * maxCycles * maxSpans
		for _, loss := range append(d.receiverLosses[:], d.clientLoss) {
			if loss.Lost > most || loss.Ambiguous > most {
				t.Fatalf("lost %+v", loss)
			}
		}
	})
}

// An unknown token has no outcomes. A token of this daemon itself has settled ones.
func TestOutcomes_UnknownAndOwnTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f := start(t, path, 0)
	s := NewSettlementTracker(f)
	live, _ := f.OutcomesOf(s.Token())
	if got := of(live, 1<<40); got != wire.Settled {
		t.Errorf("a connection of a running daemon has the outcome %d", got)
	}
	if len(s.Token()) > wire.MaxToken {
		t.Errorf("a token has %d bytes", len(s.Token()))
	}
	for _, token := range []string{
		"", "-", "a", f.name, f.name + "-", f.name + "-0", "-1", "x-1", "../s-1", "/../s-1",
		f.name + "-zz",
	} {
		if got, isPending := f.OutcomesOf(token); got != nil || isPending {
			t.Errorf("%q has the outcomes %d, pending %t", token, got, isPending)
		}
	}
	var noFile *File
	if outcomes, isPending := noFile.OutcomesOf(s.Token()); outcomes != nil || isPending || NewSettlementTracker(noFile).Token() != "" {
		t.Error("a daemon without a file has a token")
	}
	all := []*SettlementTracker{s}
	for range 3 {
		all = append(all, NewSettlementTracker(f))
	}
	if NewSettlementTracker(f).Token() != "" {
		t.Error("a connection without a free record has a token")
	}
	before := all[2].Token()
	all[2].Receive(7)
	all[2].Close()
	if again := NewSettlementTracker(f); again.Token() == "" || again.Token() == before || again.Received() != 0 ||
		all[2].Received() != 7 || all[2].SettleBefore(1<<50) != 0 {
		t.Errorf("the reused record has the token %q and %d spans", again.Token(), again.Received())
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
}

// Files are kept for a while after their losses were reported, up to a limit, and then removed.
func TestFile_RemovedAfterReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		var tokens []string
		for i := range maxKeptFiles + 3 {
			f := start(t, path, min(i, 1))
			tokens = append(tokens, NewSettlementTracker(f).Token())
			kill(t, f)
			time.Sleep(time.Second)
		}
		last := start(t, path, 1)
		if files := filesOf(t, path); len(files) != maxKeptFiles+1 {
			t.Errorf("%q are kept", files)
		}
		newest, _ := last.OutcomesOf(tokens[len(tokens)-1])
		oldest, _ := last.OutcomesOf(tokens[0])
		if newest == nil || oldest != nil {
			t.Error("the newest is not known, or the oldest is")
		}
		time.Sleep(keepFor + time.Second)
		last.predecessors.recordReports()
		if files := filesOf(t, path); len(files) != 1 {
			t.Errorf("%q are left, want that of the daemon", files)
		}
		if err := last.Remove(); err != nil {
			t.Error(err)
		}
	})
}

func filesOf(t *testing.T, path string) []string {
	t.Helper()
	files, err := filepath.Glob(path + ".running-*")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The spans of a disconnected client are counted in the cycles that contain them, however many cycles these are.
func TestAccounting_SpansOfDisconnectedClients(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f := start(t, path, 0)
	s := NewSettlementTracker(f)
	const cycles = 40
	for cycle := range uint64(cycles) {
		f.BeginCycle(cycle)
		s.EnterCycle(cycle)
		s.Receive(1)
	}
	for cycle := range uint64(cycles - 10) {
		if cycle == 3 {
			f.Settle(cycle) // before it disconnects
		}
	}
	s.Close()
	for cycle := range uint64(cycles - 10) {
		f.Settle(cycle)
	}
	f.SetInDoubt(cycles-1, true)
	kill(t, f)
	next := start(t, path, 1)
	defer func() { _ = next.Remove() }()
	if got := next.Losses().Receivers["socket"]; got != (Loss{Lost: 9, Ambiguous: 1}) {
		t.Errorf("lost %+v, want 9 and 1 in doubt of 40 spans in as many cycles, 30 of which are settled", got)
	}
}

// Later cycles reuse the slots of earlier ones. Unsettled spans of such a cycle count as lost, and
// no later call makes them count twice.
func TestLosses_CycleWhoseSlotIsReused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f := start(t, path, 0)
	s := NewSettlementTracker(f)
	for cycle := range uint64(maxCycles + 2) {
		f.BeginCycle(cycle)
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
	outcomes, _ := next.OutcomesOf(token)
	if got := of(outcomes, 5); got != wire.Ambiguous {
		t.Errorf("a span of it is %d", got)
	}
}

// Records of connections that the daemon itself closes stay, so that their clients can ask the next
// daemon about their spans if this one is killed during shutdown. Clients that disconnected earlier
// have nothing to resend.
func TestRecords_StayAfterBye(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f := start(t, path, 0)
	disconnected, connected := NewSettlementTracker(f), NewSettlementTracker(f)
	tokens := [2]string{disconnected.Token(), connected.Token()}
	for cycle := range uint64(3) {
		f.BeginCycle(cycle)
		disconnected.EnterCycle(cycle)
		disconnected.Receive(5)
		connected.EnterCycle(cycle)
		connected.Receive(7)
	}
	f.Settle(0)
	disconnected.Close()
	f.SetStopping()
	connected.Close()
	f.SetInDoubt(1, true)
	kill(t, f)
	next := start(t, path, 1)
	defer func() { _ = next.Remove() }()
	all := next.Losses()
	if want := (Loss{Lost: 5, Ambiguous: 5}); all.Receivers["socket"] != want || all.Awaited != 14 {
		t.Errorf("before any client has reconnected: %+v", all)
	}
	if outcomes, _ := next.OutcomesOf(tokens[0]); outcomes != nil {
		t.Errorf("the disconnected client has the outcomes %d", outcomes)
	}
	want := []uint64{
		0, uint64(wire.Settled), 7, uint64(wire.Settled), 14, uint64(wire.Ambiguous), 21,
		uint64(wire.Resend),
	}
	if outcomes, _ := next.OutcomesOf(tokens[1]); !slices.Equal(outcomes, want) {
		t.Errorf("the client that got the bye has the outcomes %d, want %d", outcomes, want)
	}
	if awaited := next.Losses().Awaited; awaited != 0 {
		t.Errorf("%d spans of a reconnected client are awaited", awaited)
	}
}

// follow runs a daemon's watch of its predecessors until it is stopped, or the test ends.
func follow(t *testing.T, f *File) (stop func()) {
	t.Helper()
	stopping, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		f.FollowPredecessors(stopping)
	}()
	stop = sync.OnceFunc(func() {
		close(stopping)
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// A daemon is killed while it shuts down, and its successor runs already. Until then, the outcomes
// are pending; then its clients get them, and the crash is reported.
func TestPredecessor_KilledBesideSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		stopping := start(t, path, 0)
		stopping.BeginCycle(0)
		s := NewSettlementTracker(stopping)
		s.EnterCycle(0)
		s.Receive(7)
		stopping.Count(0, Zipkin, 5)
		stopping.SetStopping()
		next := start(t, path, 0)
		defer func() { _ = next.Remove() }()
		follow(t, next)
		time.Sleep(10 * time.Second)
		if outcomes := outcomesOf(next, s.Token()); outcomes != "pending" {
			t.Errorf("while it shuts down: %s", outcomes)
		}
		kill(t, stopping)
		if outcomes := outcomesOf(next, s.Token()); outcomes != "[0 0 7 2]" {
			t.Errorf("after it was killed: %s", outcomes)
		}
		time.Sleep(2 * scanInterval)
		if all := next.Losses(); next.Crashes() != 1 || all.Receivers["zipkin"] != (Loss{Lost: 5}) || all.Awaited != 0 {
			t.Errorf("%d crashes, lost %+v", next.Crashes(), all)
		}
	})
}

// A daemon is killed while it shuts down, and its successor shuts down before its next scan.
func TestPredecessor_KilledBeforeSuccessorStops(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	stopping := start(t, path, 0)
	stopping.BeginCycle(0)
	stopping.Count(0, Zipkin, 5)
	next := start(t, path, 0)
	stop := follow(t, next)
	kill(t, stopping)
	stop()
	if got := next.Losses().Receivers["zipkin"]; got != (Loss{Lost: 5}) {
		t.Errorf("lost %+v", got)
	}
	if err := next.Remove(); err != nil {
		t.Error(err)
	}
	if err := start(t, path, 0).Remove(); err != nil {
		t.Error(err)
	}
}

// A daemon shuts down gracefully next to its successor: it has delivered everything.
func TestPredecessor_StopsBesideSuccessor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	stopping := start(t, path, 0)
	token := NewSettlementTracker(stopping).Token()
	next := start(t, path, 0)
	defer func() { _ = next.Remove() }()
	if err := stopping.Remove(); err != nil {
		t.Error(err)
	}
	next.ReportCrashes()
	if outcomes := outcomesOf(next, token); outcomes != "[]" || next.Crashes() != 0 {
		t.Errorf("%s, %d crashes", outcomes, next.Crashes())
	}
}

// Each daemon of a crash loop runs for less than the time in which clients reconnect, some for less than a
// second. Every lost span is reported once: by a daemon that runs long enough, or when there are too many files.
func TestCrashLoop_ReportsEachSpanOnce(t *testing.T) {
	for name, lives := range map[string]int{"a few": 4, "many": 3 * maxKeptFiles} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "s")
				var socket, otlp uint64
				count := func(f *File) {
					socket += f.Losses().Receivers["socket"].Lost
					otlp += f.Losses().Receivers["otlp"].Lost
				}
				f := start(t, path, 0)
				for range lives {
					f.BeginCycle(1)
					f.Count(1, OTLP, 5)
					s := NewSettlementTracker(f)
					s.EnterCycle(1)
					s.Receive(7)
					time.Sleep(900 * time.Millisecond)
					count(f)
					kill(t, f)
					f = start(t, path, 1)
				}
				follow(t, f)
				time.Sleep(reconnectTimeout + 2*scanInterval)
				count(f)
				if want := uint64(lives); socket != 7*want || otlp != 5*want || f.Losses().Awaited != 0 {
					t.Errorf("%d socket spans and %d OTLP spans are reported, want %d and %d", socket, otlp, 7*want,
						5*want)
				}
				_ = f.Remove()
			})
		})
	}
}

// A client has reconnected to a daemon that is killed as well: its spans are not lost with the first one.
func TestCrashLoop_ClientThatReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "s")
		first := start(t, path, 0)
		first.BeginCycle(1)
		s := NewSettlementTracker(first)
		s.EnterCycle(1)
		s.Receive(7)
		token := s.Token()
		kill(t, first)
		second := start(t, path, 1)
		answer := outcomesOf(second, token)
		kill(t, second)
		third := start(t, path, 1)
		defer func() { _ = third.Remove() }()
		follow(t, third)
		time.Sleep(reconnectTimeout + 2*scanInterval)
		if all := third.Losses(); all.Sum() != (Loss{}) {
			t.Errorf("lost %+v", all)
		}
		if again := outcomesOf(third, token); again != answer || answer != "[0 0 7 2]" {
			t.Errorf("the outcomes are %s and %s", answer, again)
		}
	})
}

// The files of all daemons together have a limit, whether daemons run for minutes or crash while they start.
func TestDirectory_IsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	most := 0
	measure := func() {
		bytes := 0
		for _, name := range filesOf(t, path) {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			bytes += int(info.Size())
		}
		most = max(most, bytes)
	}
	for i := range 100 {
		f := create(t, path)
		measure()
		if i%3 > 0 {
			f.ReportCrashes()
			NewSettlementTracker(f)
			measure()
		}
		if i%3 > 1 {
			f.predecessors.recordReports()
		}
		kill(t, f)
	}
	if most > DirectoryBytes(4) {
		t.Errorf("%d bytes, where the limit is %d", most, DirectoryBytes(4))
	}
}

// A crash loop of starts does not evict the file that clients will ask about.
func TestDirectory_KeepsClients(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f := start(t, path, 0)
	f.BeginCycle(0)
	s := NewSettlementTracker(f)
	s.EnterCycle(0)
	s.Receive(7)
	kill(t, f)
	for range 3 * maxKeptFiles {
		starting := create(t, path)
		starting.ReportCrashes()
		kill(t, starting) // before it records anything
	}
	next := create(t, path)
	defer func() { _ = next.Remove() }()
	if outcomes := outcomesOf(next, s.Token()); outcomes != "[0 0 7 2]" {
		t.Errorf("its client gets the outcomes %s", outcomes)
	}
}

// Thousands of files are read a few at a time, reported, and removed.
func TestDirectory_ThousandsOfFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	f := start(t, path, 0)
	f.BeginCycle(0)
	f.Count(0, APM, 3)
	NewSettlementTracker(f)
	kill(t, f)
	content, err := os.ReadFile(pathOf(f))
	if err != nil {
		t.Fatal(err)
	}
	const files = 1000
	for i := range files - 1 {
		if err := os.WriteFile(fmt.Sprint(path, ".running-1-", i), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	next := create(t, path)
	defer func() { _ = next.Remove() }()
	next.ReportCrashes()
	if got := next.Losses().Receivers["apm"].Lost; got != 3*files || next.Crashes() != files {
		t.Errorf("%d daemons lost %d spans", next.Crashes(), got)
	}
	if left := filesOf(t, path); len(left) != maxKeptFiles+1 || len(next.predecessors.crashed) != maxKeptFiles {
		t.Errorf("%d files are left, %d are open", len(left), len(next.predecessors.crashed))
	}
}
