package exemplars

import (
	"math/rand/v2"
	"testing"
)

// series is a key and an outcome in a cycle.
type series struct {
	cycle   uint64
	key     uint32
	isError bool
}

// proposed is a span that was proposed, by its id.
type proposed struct {
	series
	duration uint64
}

// body is one that the agent has not answered yet.
type body struct {
	candidates Candidates
	spans      []proposed
}

// propose proposes spans of a body. The id of each is its place in all.
func propose(t *Table, spans []proposed, all *[]proposed) body {
	return body{spans: spans, candidates: t.Choose(func(b *Body) {
		for _, s := range spans {
			*all = append(*all, s)
			if e := b.Propose(s.cycle, s.key, s.isError, s.duration); e != nil {
				*e = Exemplar{
					TraceHigh: 1, TraceLow: 2, Span: uint64(len(*all)), Duration: s.duration,
					End: 3,
				}
			}
		}
	})}
}

// TestTheSlowestThatWentOnIsTheExemplar holds random bodies, answered in any order, to a model
// that remembers every span: of each series the exemplar is the slowest of those whose bodies
// the agent took before the cycle was sealed.
func TestTheSlowestThatWentOnIsTheExemplar(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		table, all, slowest := New(1<<12), []proposed(nil), map[series]uint64{}
		waiting, apart := []body(nil), 12*(seed%2) // so that all are in one list
		for cycle := range uint64(12) {
			for range rnd.IntN(60) {
				var spans []proposed
				for range rnd.IntN(20) {
					s := series{cycle, uint32(rnd.IntN(1+rnd.IntN(40))) << apart, rnd.IntN(4) == 0}
					spans = append(spans, proposed{s, rnd.Uint64N(100)})
				}
				waiting = append(waiting, propose(table, spans, &all))
				for rnd.IntN(3) > 0 && len(waiting) > 0 {
					i := rnd.IntN(len(waiting))
					b, isTaken := waiting[i], rnd.IntN(4) > 0
					waiting[i] = waiting[len(waiting)-1]
					waiting = waiting[:len(waiting)-1]
					table.Resolve(b.candidates, isTaken)
					for _, s := range b.spans {
						if before, is := slowest[s.series]; isTaken && s.cycle == cycle &&
							(!is || s.duration > before) {
							slowest[s.series] = s.duration
						}
					}
				}
			}
			sealed := table.Seal(cycle)
			for key := range uint32(41) {
				for _, isError := range []bool{false, true} {
					s := series{cycle, key << apart, isError}
					got, want, is := sealed.Of(s.key, isError), slowest[s], false
					_, is = slowest[s]
					if is != (got.Span != 0) ||
						is && (got.Duration != want || all[got.Span-1] != proposed{s, want}) {
						t.Fatalf("seed %d: %+v has %+v, want one of %d: %t", seed, s, got, want, is)
					}
				}
			}
		}
		for _, b := range waiting {
			table.Resolve(b.candidates, true)
		}
		if n := unused(table); n != len(table.candidates.all) {
			t.Fatalf("seed %d: %d of %d candidates came back", seed, n, len(table.candidates.all))
		}
	}
}

// unused is how many candidates wait to be used again.
func unused(t *Table) (n int) {
	for at := t.candidates.unused; at != 0; at = t.candidates.all[at-1].next {
		n++
	}
	return n
}

// TestWhatFindsNoRoomHasNoExemplar, and everything that there is room for has one.
func TestWhatFindsNoRoomHasNoExemplar(t *testing.T) {
	table, all := New(3), []proposed(nil)
	var spans []proposed
	for key := range uint32(5) {
		spans = append(spans, proposed{series{7, key, false}, 10})
	}
	first := propose(table, spans[:2], &all)
	propose(table, spans, &all) // is never answered: its last candidate takes the room that is left
	table.Resolve(first.candidates, true)
	sealed := table.Seal(7)
	for key := range uint32(5) {
		if got := sealed.Of(key, false); (got.Span != 0) != (key < 2) {
			t.Errorf("key %d has %+v", key, got)
		}
	}
	if n := unused(table); n != 2 {
		t.Errorf("%d candidates are free, want those of the body that was answered", n)
	}
	if got := table.Counts(); got != (Counts{Taken: 2, NoRoom: 4}) {
		t.Errorf("%+v", got)
	}
}

// TestWhatComesTooLateIsNoExemplar: neither of the cycle that was taken nor of the one that has
// its memory now.
func TestWhatComesTooLateIsNoExemplar(t *testing.T) {
	table, all := New(8), []proposed(nil)
	late := propose(table, []proposed{{series{4, 1, false}, 50}}, &all)
	sealed := table.Seal(4)
	table.Resolve(late.candidates, true)
	if got := sealed.Of(1, false); got.Span != 0 {
		t.Errorf("of the sealed cycle: %+v", got)
	}
	later := propose(table, []proposed{{series{6, 1, false}, 5}}, &all)
	table.Resolve(later.candidates, true)
	if got := table.Seal(6).Of(1, false); got.Duration != 5 {
		t.Errorf("of the cycle after the next: %+v", got)
	}
	never := propose(table, []proposed{{series{8, 1, false}, 70}}, &all)
	propose(table, []proposed{{series{10, 2, false}, 1}}, &all) // nobody has sealed the cycle before
	table.Resolve(never.candidates, true)
	if got := table.Seal(10).Of(2, false); got.Span != 0 {
		t.Errorf("of a cycle in the memory of one that nobody sealed: %+v", got)
	}
	refused := propose(table, []proposed{{series{10, 3, true}, 1}}, &all)
	table.Resolve(refused.candidates, false)
	if got := table.Counts(); got != (Counts{Taken: 1, Late: 2, Refused: 1}) {
		t.Errorf("%+v", got)
	}
	if got := table.Seal(5).Of(1, false); got.Span != 0 {
		t.Errorf("of a cycle of which nothing was proposed: %+v", got)
	}
}

// TestWhatIsNoSlowerIsNotProposed: it would take the room of what is.
func TestWhatIsNoSlowerIsNotProposed(t *testing.T) {
	table, all := New(8), []proposed(nil)
	one := series{1, 1, false}
	table.Resolve(propose(table, []proposed{{one, 0}}, &all).candidates, true)
	table.Choose(func(b *Body) {
		if b.Propose(1, 1, false, 0) != nil || b.Propose(1, 1, false, 1) == nil ||
			b.Propose(1, 1, true, 0) == nil {
			t.Error("a span is proposed that is no slower than the exemplar, or one is not that is")
		}
	})
}

func TestATableOfNothing(t *testing.T) {
	table := New(0)
	table.Resolve(Candidates{}, true)
	if table != nil || table.Bytes() != 0 || table.Seal(1).Of(1, false).Span != 0 ||
		table.Counts() != (Counts{}) {
		t.Error("there is a table where none is wanted")
	}
}

// TestProposingAllocatesNothing, from the first of a cycle on.
func TestProposingAllocatesNothing(t *testing.T) {
	const keys = 1000
	table, cycle := New(2*keys), uint64(0)
	each := func(b *Body) {
		for i := range uint32(3 * keys) {
			if e := b.Propose(cycle, i%keys, i%2 == 0, uint64(i)); e != nil {
				*e = Exemplar{Span: 1, Duration: uint64(i)}
			}
		}
	}
	allocations := testing.AllocsPerRun(20, func() {
		table.Resolve(table.Choose(each), true)
		table.Seal(cycle)
		cycle++
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// TestATableTakesWhatItSays: the slices that it is made of do not grow.
func TestATableTakesWhatItSays(t *testing.T) {
	table, all := New(100), []proposed(nil)
	before := table.Bytes()
	for cycle := range uint64(4) {
		var spans []proposed
		for key := range uint32(300) {
			spans = append(spans, proposed{series{cycle, key, key%2 == 0}, 10})
		}
		propose(table, spans, &all)
	}
	if after := table.Bytes(); after != before || before < 100*100 {
		t.Errorf("%d bytes, and %d after more than it has room for", before, after)
	}
}
