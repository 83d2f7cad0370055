package sketch

// Store is the counts of one distribution while spans are added, by the cells of its
// arena's Grid. It takes memory for the cells that are used, not for the range between
// them, and holds no pointer. It is in one of three forms:
//
//   - listed: the cells of the first spans, in the order of their arrival. It needs no
//     page, and most stores of a flood never become another one.
//   - paged: for the cells of each 64 bins the place of the page that counts them, or 0. The
//     bins of all durations fit, so nothing is collapsed here; Sketch does that at the end,
//     as the library would have done it.
//   - inline: counters of 35 neighbouring cells in place of the pages' places, for a store
//     that would need its first page when there is none.
//
// When Memory is used up, a store does what the library does beyond its 2048 bins, only
// earlier: it collapses its lowest cells into the lowest one that it keeps, the floor. No
// span is lost, and the highest cells, and so the high percentiles, stay exact.
type Store struct {
	zeros   uint32
	floor   uint16 // rank of a cell in which lower ones are counted; 0 while there is memory
	form    form
	entries uint8            // of the list
	words   [allPages]uint32 // the list, two cells a word; places of pages; or counters from the floor on
}

type form uint8

const (
	listed form = iota
	paged
	inline
)

const listCells = 2 * allPages

// Add counts one span of that many nanoseconds, unweighted, as the agent does.
func (s *Store) Add(a *Arena, nanoseconds uint64) {
	if nanoseconds == 0 {
		s.zeros++
		return
	}
	cell := a.grid.cellOf(nanoseconds)
	if s.form == paged {
		if place := s.words[cell/pageCells]; place != 0 {
			*a.counter(place, cell)++
			return
		}
	}
	s.addCell(a, cell)
}

// addCell counts a span of any cell in whatever form the store has.
func (s *Store) addCell(a *Arena, cell uint) {
	switch {
	case s.form == inline:
		s.addInline(a, cell)
	case s.form == paged && s.words[cell/pageCells] != 0:
		*a.counter(s.words[cell/pageCells], cell)++
	case s.form == paged:
		s.addPage(a, cell)
	case s.entries < listCells:
		s.words[s.entries/2] |= uint32(cell) << (s.entries % 2 * 16)
		s.entries++
	default:
		list := *s
		*s = Store{zeros: s.zeros, form: paged}
		for i := range uint(listCells) {
			s.addCell(a, list.entry(i))
		}
		s.addCell(a, cell)
	}
}

func (s *Store) entry(i uint) uint { return uint(uint16(s.words[i/2] >> (i % 2 * 16))) }

// addPage counts a span of a cell that has no page in a new one, or without memory in
// place of the lowest page, or in the floor.
func (s *Store) addPage(a *Arena, cell uint) {
	at, lowest, rank := int(cell/pageCells), s.lowestPage(), a.grid.rank(cell)
	switch {
	case rank < uint(s.floor):
	case s.newPage(a, at):
		*a.counter(s.words[at], cell)++
		return
	case lowest < 0:
		s.form, s.floor = inline, uint16(max(int(rank)-(allPages-1), 0))
		s.addInline(a, cell)
		return
	case lowest < at:
		s.replaceLowestPage(a, lowest, at)
		s.addCell(a, cell)
		return
	default:
		s.floor = uint16(uint(lowest) * a.grid.perPage)
	}
	s.addCell(a, a.grid.ranked(uint(s.floor)))
	a.memory.coarsened.Add(1)
}

func (s *Store) newPage(a *Arena, at int) bool {
	s.words[at] = a.newPage()
	return s.words[at] != 0
}

// lowestPage is which page is the lowest, or -1.
func (s *Store) lowestPage() int {
	for i, place := range s.words {
		if place != 0 {
			return i
		}
	}
	return -1
}

// replaceLowestPage makes the lowest page one of higher cells. Its counts go to the floor,
// which is then the first cell of the lowest page.
func (s *Store) replaceLowestPage(a *Arena, lowest, at int) {
	place := s.words[lowest]
	spans := sum(a.page(place))
	clear(a.page(place))
	s.words[lowest], s.words[at] = 0, place
	lowest = s.lowestPage()
	s.floor = uint16(uint(lowest) * a.grid.perPage)
	a.page(s.words[lowest])[0] += spans
	a.memory.coarsened.Add(uint64(spans))
}

// addInline counts a span in place. A cell above the counters raises the floor.
func (s *Store) addInline(a *Arena, cell uint) {
	rank := a.grid.rank(cell)
	if above := int(rank) - int(s.floor) - (allPages - 1); above > 0 {
		cut := min(above, allPages)
		below := sum(s.words[:cut])
		copy(s.words[:], s.words[cut:])
		clear(s.words[allPages-cut:])
		s.words[0] += below
		s.floor += uint16(above)
		a.memory.coarsened.Add(uint64(below))
	}
	if rank < uint(s.floor) {
		rank = uint(s.floor)
		a.memory.coarsened.Add(1)
	}
	s.words[rank-uint(s.floor)]++
}

func sum(counters []uint32) (spans uint32) {
	for _, n := range counters {
		spans += n
	}
	return spans
}

// Sum is what stores and tracers' bins are added up in: a Sketch, a Histogram or a Classic.
type Sum interface {
	AddZeros(spans uint64)
	AddBins(m Mapping, bins []Bin)
	// addCells adds the counters of neighbouring cells of one page.
	addCells(g *Grid, first uint, counters []uint32)
}

var oneSpan = []uint32{1}

// Read adds what the store has counted to a sum.
func (s *Store) Read(a *Arena, to Sum) {
	to.AddZeros(uint64(s.zeros))
	switch s.form {
	case listed:
		for i := range uint(s.entries) {
			to.addCells(a.grid, s.entry(i), oneSpan)
		}
	case paged:
		for page, place := range s.words {
			if place != 0 {
				to.addCells(a.grid, uint(page*pageCells), a.page(place))
			}
		}
	case inline:
		for i := range s.words {
			to.addCells(a.grid, a.grid.ranked(uint(s.floor)+uint(i)), s.words[i:i+1])
		}
	}
}
