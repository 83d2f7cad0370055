package sketch

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
)

// newLibrarySketch returns a sketch of the library, configured as in the agent.
func newLibrarySketch() *ddsketch.DDSketch {
	s, err := ddsketch.LogCollapsingLowestDenseDDSketch(RelativeAccuracy, maxBins)
	if err != nil {
		panic(err)
	}
	return s
}

// content is a sketch in a form that can be compared.
type content struct {
	zeros float64
	bins  []bin
}

type bin struct {
	index int32
	count float64
}

func libraryContent(s *ddsketch.DDSketch) content {
	c := content{zeros: s.GetZeroCount()}
	s.GetPositiveValueStore().ForEach(func(index int, count float64) bool {
		c.bins = append(c.bins, bin{int32(index), count})
		return false
	})
	return c
}

// add counts one span in a sketch itself.
func (s *Sketch) add(nanoseconds uint64) {
	if nanoseconds == 0 {
		s.AddZeros(1)
	} else {
		s.AddBin(binOf(nanoseconds), 1)
	}
}

func (s *Sketch) content() content {
	c := content{zeros: s.Zeros()}
	end := int32(-1)
	for _, r := range s.Runs(nil, 0) {
		if r.First == end {
			panic("two runs are one")
		}
		for i, count := range s.Counts(r) {
			c.bins = append(c.bins, bin{r.First + int32(i), float64(count)})
		}
		end = r.End
	}
	return c
}

func (c content) spans() (total float64) {
	total = c.zeros
	for _, b := range c.bins {
		total += b.count
	}
	return total
}

// shapes draw durations: where in the range, how far apart, how often alike.
var shapes = map[string]func(*rand.Rand) uint64{
	"web":     func(r *rand.Rand) uint64 { return uint64(1e6 + 20e6*r.ExpFloat64()) },
	"any":     func(r *rand.Rand) uint64 { return r.Uint64() >> r.IntN(64) },
	"spread":  func(r *rand.Rand) uint64 { return uint64(1e3 * math.Exp(r.Float64()*math.Log(1e7))) },
	"few":     func(r *rand.Rand) uint64 { return 1 << (r.IntN(4) * 20) },
	"falling": func(r *rand.Rand) uint64 { return math.MaxUint64 >> r.Uint64N(64) },
	"ends":    func(r *rand.Rand) uint64 { return uint64(r.IntN(2)) * (math.MaxUint64 - uint64(r.IntN(3))) },
	"low":     func(r *rand.Rand) uint64 { return uint64(r.IntN(40)) },
}

// TestStore_AgainstLibrary counts the same durations in the same order in stores that
// share one Arena and in library sketches, then adds some of them up on both
// sides: bin for bin the same, whatever was collapsed when.
func TestStore_AgainstLibrary(t *testing.T) {
	for name, grid := range grids {
		t.Run(name, func(t *testing.T) { storeIsTheLibrarys(t, grid) })
	}
}

func storeIsTheLibrarys(t *testing.T, grid *Grid) {
	arena := NewArena(NewMemory(64<<20, grid))
	for name, draw := range shapes {
		for _, spans := range []int{1, 2, listCells - 1, listCells, listCells + 1, 300, 5000} {
			for seed := range uint64(6) {
				rnd := rand.New(rand.NewPCG(seed, uint64(spans)))
				order := []func([]uint64){
					func([]uint64) {}, slices.Sort[[]uint64],
					func(all []uint64) { slices.Sort(all); slices.Reverse(all) },
				}[seed%3]
				stores, libraries := make([]Store, 3),
					[]*ddsketch.DDSketch{newLibrarySketch(), newLibrarySketch(), newLibrarySketch()}
				var merged Sketch
				for i := range stores {
					all := make([]uint64, spans)
					for n := range all {
						all[n] = draw(rnd)
					}
					order(all)
					for _, ns := range all {
						stores[i].Add(&arena, ns)
						if err := libraries[i].Add(truncate(ns)); err != nil {
							t.Fatal(err)
						}
					}
				}
				for i := range stores {
					var s Sketch
					stores[i].Read(&arena, &s)
					if got, want := s.content(), libraryContent(libraries[i]); !reflect.DeepEqual(got, want) {
						t.Fatalf("%s, %d spans, seed %d: %v, want %v", name, spans, seed, got, want)
					}
					stores[i].Read(&arena, &merged)
					if i > 0 {
						if err := libraries[0].MergeWith(libraries[i]); err != nil {
							t.Fatal(err)
						}
					}
				}
				if got, want := merged.content(),
					libraryContent(libraries[0]); !reflect.DeepEqual(got, want) {
					t.Fatalf("%s, 3 times %d spans, seed %d: %v, want %v", name, spans, seed, got, want)
				}
				if rnd.IntN(3) == 0 {
					arena.Reset()
				}
			}
		}
	}
	if n := arena.memory.Coarsened(); n != 0 {
		t.Errorf("%d spans coarsened with memory to spare", n)
	}
}

// TestStore_WithoutMemory gives many sketches too few pages, or none. Whatever each
// of them got, it is the exact one with its lowest bins collapsed into one: no
// span is lost, and the highest bins are as they were.
func TestStore_WithoutMemory(t *testing.T) {
	for name, grid := range grids {
		t.Run(name, func(t *testing.T) { storeWithoutMemory(t, grid) })
	}
}

func storeWithoutMemory(t *testing.T, grid *Grid) {
	for name, draw := range shapes {
		for _, pages := range []uint32{0, 1, 2, 5, 40} {
			rnd := rand.New(rand.NewPCG(7, uint64(pages)))
			arena := NewArena(NewMemory(ChunkBytes, grid))
			for arena.next < chunkCounters-pages*uint32(grid.cellsPerPage) {
				if arena.newPage() == 0 {
					t.Fatal("no page of a fresh chunk")
				}
			}
			stores, exact := make([]Store, 4), make([]Sketch, 4)
			for range 4000 {
				i, ns := rnd.IntN(4), draw(rnd)
				stores[i].Add(&arena, ns)
				exact[i].add(ns)
			}
			collapsed := 0
			for i := range stores {
				var s Sketch
				stores[i].Read(&arena, &s)
				got, want := s.content(), exact[i].content()
				if got.spans() != 4000 && got.spans() != want.spans() || got.zeros != want.zeros {
					t.Fatalf("%s, %d pages: %v spans, want %v", name, pages, got.spans(), want.spans())
				}
				if !reflect.DeepEqual(got, collapse(want, got)) {
					t.Fatalf("%s, %d pages: %v is not the top of %v", name, pages, got, want)
				}
				if len(got.bins) < len(want.bins) {
					collapsed++
				}
			}
			if counted := arena.memory.Coarsened(); (counted > 0) != (collapsed > 0) {
				t.Errorf("%s, %d pages: %d sketches collapsed, %d spans counted as coarsened", name, pages,
					collapsed, counted)
			}
		}
	}
}

// collapse is want with all bins below the lowest of like in that one.
func collapse(want, like content) content {
	if len(like.bins) == 0 {
		return want
	}
	floor := like.bins[0]
	c := content{want.zeros, []bin{{floor.index, 0}}}
	for _, b := range want.bins {
		if b.index <= floor.index {
			c.bins[0].count += b.count
		} else {
			c.bins = append(c.bins, b)
		}
	}
	return c
}

// TestStore_SpansMoveWhenFloorRises counts many spans, in a page and in place, and then one
// that is far above them when there is no memory for it: none is lost.
func TestStore_SpansMoveWhenFloorRises(t *testing.T) {
	for name, grid := range grids {
		t.Run(name, func(t *testing.T) { spansMoveWhenTheFloorRises(t, grid) })
	}
}

func spansMoveWhenTheFloorRises(t *testing.T, grid *Grid) {
	const many = 200_000
	for _, bytes := range []int{0, ChunkBytes} {
		arena := NewArena(NewMemory(bytes, grid))
		var s Store
		for range many {
			s.Add(&arena, 1000)
			s.Add(&arena, 1200)
		}
		var got Sketch
		s.Read(&arena, &got)
		if want := (content{0, []bin{
			{int32(binOf(1000)), many},
			{int32(binOf(1200)), many},
		}}); !reflect.DeepEqual(got.content(), want) {
			t.Errorf("%d bytes: %v, want %v", bytes, got.content(), want)
		}
		for arena.next > 0 && arena.newPage() != 0 { // take all pages
		}
		s.Add(&arena, 1e9)
		got.Reset()
		s.Read(&arena, &got)
		// Both were in one page, or below the highest bins that are kept in place: they
		// went up as one.
		c := got.content()
		if len(c.bins) != 2 || c.bins[0].count != 2*many || c.bins[1] != (bin{int32(binOf(1e9)), 1}) {
			t.Errorf("%d bytes, after the floor rose: %v", bytes, c)
		}
	}
}

const chunkPages = chunkCounters / pageBins

// TestArena_PagesAreSharedAndReturned has two tables use all pages of one limit. A reset returns the
// pages, and they are empty when they are used again.
func TestArena_PagesAreSharedAndReturned(t *testing.T) {
	memory := NewMemory(3*ChunkBytes, AgentGrid())
	a, b := NewArena(memory), NewArena(memory)
	for range 2*chunkPages - 1 {
		if a.newPage() == 0 {
			t.Fatal("no page within the limit")
		}
	}
	b.newPage()
	if a.newPage() != 0 || memory.Taken() != 3*ChunkBytes {
		t.Errorf("%d bytes used of %d", memory.Taken(), 3*ChunkBytes)
	}
	copy(b.page(pageBins), []uint32{3, 4, 5})
	b.Reset()
	a.Reset()
	if memory.Taken() != 0 {
		t.Errorf("%d bytes used after the reset", memory.Taken())
	}
	for ref := a.newPage(); ref != 0; ref = a.newPage() {
		if !slices.Equal(a.page(ref), make([]uint32, pageBins)) {
			t.Fatalf("the page at %d is not empty", ref)
		}
	}
	if a.next != 3*chunkCounters {
		t.Errorf("%d counters of three chunks", a.next)
	}
}

// TestStore_LargestCounts adds counts that no cycle can reach.
func TestStore_LargestCounts(t *testing.T) {
	var s Sketch
	for range 3 {
		s.AddBin(5, 1<<60)
	}
	if got := s.content().bins; got[0].count != 3<<60 {
		t.Errorf("%v", got)
	}
}

// TestArena_ReservedWithinLimit: reserved chunks and those of stores add up to the limit
// exactly, and never exceed it.
func TestArena_ReservedWithinLimit(t *testing.T) {
	const limit = 4
	m := NewMemory(limit*ChunkBytes, AgentGrid())
	if m.Reserve(limit + 1) {
		t.Error("more is reserved than there may be")
	}
	chunks := []chunk{m.take(), m.take()}
	if m.Reserve(3) || !m.Reserve(2) {
		t.Error("with two of four chunks used, other than two can be reserved")
	}
	if m.take() != nil || m.Taken() != limit*ChunkBytes {
		t.Errorf("%d bytes are used, want one chunk less", m.Taken())
	}
	m.putBack(chunks)
	if !m.Reserve(2) || m.take() != nil {
		t.Error("chunks that came back are not to be had, or twice")
	}
	if m.Release(limit); m.take() == nil {
		t.Error("what was released is not to be had")
	}
}
