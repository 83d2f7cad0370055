package sketch

// Store counts the durations of one distribution, by the cells of its arena's Grid. It takes memory
// only for cells in use, and has no pointers. It has one of three forms:
//
//   - listed: a list of the cells of the first spans, in order of arrival. It needs no page. Most stores in a high-cardinality burst stay in this form.
//   - paged: for each page of cells, the index of the page's counters, or 0. There are enough pages for all durations, so nothing is collapsed here; Sketch collapses bins in the end, as the library would have done.
//   - inline: counters of 35 neighboring cells instead of the page indexes, for a store that needs its first page when there is no memory.
//
// When Memory is used up, a store does what the library does beyond 2048 bins, only earlier: it
// collapses its lowest cells into the lowest one that it keeps, the floor. No span is lost, and the
// highest cells, and so the high percentiles, stay exact.
type Store struct {
	zeros   uint32
	floor   uint16 // rank of the cell that lower ones collapse into; 0 while there is memory
	form    form
	entries uint8            // length of the list
	words   [allPages]uint32 // the list, two cells per word; page indexes; or counters from the floor on
}

type form uint8

const (
	listed form = iota
	paged
	inline
)

const listCells = 2 * allPages

// Add counts one span with the given duration. Like the agent's sketches it is unweighted.
func (s *Store) Add(a *Arena, nanoseconds uint64) {
	if nanoseconds == 0 {
		s.zeros++
		return
	}
	cell := a.grid.cellOf(nanoseconds)
	if s.form == paged {
		if index := s.words[cell/pageCells]; index != 0 {
			*a.counter(index, cell)++
			return
		}
	}
	s.addCell(a, cell)
}

// addCell counts a span in the given cell, in any form of the store. A list that is full is
// converted to pages.
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

// addPage counts a span in a cell that has no page. It allocates one. If there is no memory, it
// reuses the lowest page for higher cells, or counts the span in the floor.
func (s *Store) addPage(a *Arena, cell uint) {
	page, lowest, rank := int(cell/pageCells), s.lowestPage(), a.grid.rank(cell)
	switch {
	case rank < uint(s.floor):
	case s.newPage(a, page):
		*a.counter(s.words[page], cell)++
		return
	case lowest < 0:
		s.form, s.floor = inline, uint16(max(int(rank)-(allPages-1), 0))
		s.addInline(a, cell)
		return
	case lowest < page:
		s.replaceLowestPage(a, lowest, page)
		s.addCell(a, cell)
		return
	default:
		s.floor = uint16(uint(lowest) * a.grid.perPage)
	}
	s.addCell(a, a.grid.cellAt(uint(s.floor)))
	a.memory.coarsened.Add(1)
}

func (s *Store) newPage(a *Arena, page int) bool {
	s.words[page] = a.newPage()
	return s.words[page] != 0
}

// lowestPage returns the number of the lowest page in use, or -1.
func (s *Store) lowestPage() int {
	for i, index := range s.words {
		if index != 0 {
			return i
		}
	}
	return -1
}

// replaceLowestPage reuses the lowest page for higher cells. It moves the page's counts to the
// floor, which becomes the first cell of the next lowest page.
func (s *Store) replaceLowestPage(a *Arena, lowest, page int) {
	index := s.words[lowest]
	spans := sum(a.page(index))
	clear(a.page(index))
	s.words[lowest], s.words[page] = 0, index
	lowest = s.lowestPage()
	s.floor = uint16(uint(lowest) * a.grid.perPage)
	a.page(s.words[lowest])[0] += spans
	a.memory.coarsened.Add(uint64(spans))
}

// addInline counts a span in the inline form. A cell above the counters raises the floor.
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

// Sum adds up stores and tracers' bins. It is a Sketch, a Histogram or a Classic.
type Sum interface {
	AddZeros(spans uint64)
	AddBins(m Mapping, bins []Bin)
	// addCells adds the counters of neighboring cells of one page.
	addCells(g *Grid, first uint, counters []uint32)
}

var oneSpan = []uint32{1}

// Read adds the durations of the store to a sum.
func (s *Store) Read(a *Arena, to Sum) {
	to.AddZeros(uint64(s.zeros))
	switch s.form {
	case listed:
		for i := range uint(s.entries) {
			to.addCells(a.grid, s.entry(i), oneSpan)
		}
	case paged:
		for page, index := range s.words {
			if index != 0 {
				to.addCells(a.grid, uint(page*pageCells), a.page(index))
			}
		}
	case inline:
		for i := range s.words {
			to.addCells(a.grid, a.grid.cellAt(uint(s.floor)+uint(i)), s.words[i:i+1])
		}
	}
}
