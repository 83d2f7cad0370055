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
	zeros     uint32
	floorRank uint16 // rank of the floor, see Grid.rank; 0 while there is memory
	form      form
	entries   uint8            // length of the list
	words     [allPages]uint32 // the list, two cells per word; or see pageIndexes and inlineCounters
}

type form uint8

const (
	listed form = iota
	paged
	inline
)

const (
	listCells   = 2 * allPages // maximum length of the list
	inlineCells = allPages     // number of counters of an inline store
)

// pageIndexes contains, by page, the index of the page's counters in the arena, or noPage. The store must be paged.
func (s *Store) pageIndexes() *[allPages]uint32 { return &s.words }

// inlineCounters contains the counters of the cells from the floor on. The store must be inline.
func (s *Store) inlineCounters() *[inlineCells]uint32 { return &s.words }

// Add counts one span with the given duration.
func (s *Store) Add(a *Arena, nanoseconds uint64) {
	if nanoseconds == 0 {
		s.zeros++
		return
	}
	cell := a.grid.cellOf(nanoseconds)
	if s.form == paged {
		index := s.pageIndexes()[cell/pageCells]
		if index != noPage {
			*a.counter(index, cell)++
			return
		}
	}
	s.addCell(a, cell)
}

// addCell counts one span in a cell, a small range of durations. The form of the store determines
// whether it adds the cell to a list or increments a counter. a contains the counters.
func (s *Store) addCell(a *Arena, cell uint) {
	switch s.form {
	case listed:
		s.addListed(a, cell)
	case paged:
		s.addPaged(a, cell)
	case inline:
		s.addInline(a, cell)
	}
}

// addListed counts one span in a store that has a list of cells, one for each span, instead of
// counters. It appends the cell to the list. If the list is full, it first converts the store to
// counters.
func (s *Store) addListed(a *Arena, cell uint) {
	isFull := s.entries == listCells
	if isFull {
		s.convertToPages(a)
		s.addCell(a, cell)
		return
	}
	word := &s.words[s.entries/2] // contains two cells of 16 bits
	isUpperHalf := s.entries%2 == 1
	if isUpperHalf {
		*word |= uint32(cell) << 16
	} else {
		*word = uint32(cell)
	}
	s.entries++
}

// addPaged counts a span in a store with pages of counters.
func (s *Store) addPaged(a *Arena, cell uint) {
	index := s.pageIndexes()[cell/pageCells]
	if index == noPage {
		s.addToNewPage(a, cell)
		return
	}
	*a.counter(index, cell)++
}

// convertToPages replaces the full list of cells by pages of counters.
func (s *Store) convertToPages(a *Arena) {
	list := *s
	*s = Store{zeros: s.zeros, form: paged}
	for i := range uint(listCells) {
		s.addCell(a, list.entry(i))
	}
}

func (s *Store) entry(i uint) uint { return uint(uint16(s.words[i/2] >> (i % 2 * 16))) }

// addToNewPage counts one span in a cell, a small range of durations, whose page of counters is not allocated yet. It
// allocates the page, if there is memory. A span below the floor, the lowest cell that is kept since memory was used up,
// is counted in the floor.
func (s *Store) addToNewPage(a *Arena, cell uint) {
	isBelowFloor := a.grid.rank(cell) < uint(s.floorRank)
	if isBelowFloor {
		s.addToFloor(a)
		return
	}
	index := a.newPage()
	if index == noPage {
		s.addWithoutMemory(a, cell)
		return
	}
	s.pageIndexes()[cell/pageCells] = index
	*a.counter(index, cell)++
}

// addWithoutMemory counts one span in a cell, a small range of durations, for which no page of counters can be allocated.
func (s *Store) addWithoutMemory(a *Arena, cell uint) {
	page := int(cell / pageCells)
	lowest, hasPages := s.lowestPage()
	switch {
	case !hasPages: // the memory of the page indexes is used for a few counters
		s.becomeInline(a, cell)
		s.addInline(a, cell)
	case lowest < page: // the memory of a page for shorter durations is reused
		s.replaceLowestPage(a, lowest, page)
		s.addCell(a, cell)
	default: // all pages are for longer durations: the span is counted in their lowest cell
		s.setFloor(a, lowest)
		s.addToFloor(a)
	}
}

// becomeInline changes a store without pages of counters to an inline store, which has counters for
// inlineCells neighboring cells. The highest of these cells is the given one.
func (s *Store) becomeInline(a *Arena, cell uint) {
	s.form = inline // the counters are 0, because no page has an index
	s.floorRank = uint16(max(int(a.grid.rank(cell))-(inlineCells-1), 0))
}

// setFloor makes the lowest cell of a page the floor: spans in lower cells are counted in it from now on.
func (s *Store) setFloor(a *Arena, page int) {
	lowestCell := uint(page * pageCells)
	s.floorRank = uint16(a.grid.rank(lowestCell))
}

// addToFloor counts a span whose cell is below the floor, the lowest cell that the store keeps.
func (s *Store) addToFloor(a *Arena) {
	s.addCell(a, a.grid.cellAt(uint(s.floorRank)))
	a.memory.coarsened.Add(1)
}

// lowestPage returns the number of the lowest page in use. It returns false if there is none.
func (s *Store) lowestPage() (page int, found bool) {
	for page, index := range s.pageIndexes() {
		if index != noPage {
			return page, true
		}
	}
	return 0, false
}

// replaceLowestPage reuses the counters of the lowest page, oldPage, for newPage, which has a higher number. The lowest
// cell of the remaining pages becomes the floor. The spans of the old page are counted in it, as if they were longer.
func (s *Store) replaceLowestPage(a *Arena, oldPage, newPage int) {
	indexes := s.pageIndexes()
	index := indexes[oldPage]
	counters := a.page(index)
	spans := sum(counters)
	clear(counters)
	indexes[oldPage] = noPage
	indexes[newPage] = index
	lowest, _ := s.lowestPage() // newPage, or a page between oldPage and newPage
	s.setFloor(a, lowest)
	lowestCounters := a.page(indexes[lowest])
	lowestCounters[0] += spans // the counter of the floor
	a.memory.coarsened.Add(uint64(spans))
}

// addInline counts one span in an inline store. This has counters only for inlineCells neighboring cells (small ranges
// of durations), the lowest of which is the floor. A span in a lower cell is counted in the floor. For a span in a
// higher cell, the floor is raised first, so that this cell becomes the highest one.
func (s *Store) addInline(a *Arena, cell uint) {
	rank := a.grid.rank(cell) // position of the cell among all cells
	highestRank := uint(s.floorRank) + inlineCells - 1
	if rank > highestRank {
		s.raiseFloor(a, rank-highestRank)
	}
	floorRank := uint(s.floorRank)
	if rank < floorRank {
		s.inlineCounters()[0]++ // the counter of the floor
		a.memory.coarsened.Add(1)
		return
	}
	s.inlineCounters()[rank-floorRank]++
}

// raiseFloor raises the lowest cell of an inline store by n cells. The spans in lower cells are moved to it.
func (s *Store) raiseFloor(a *Arena, n uint) {
	counters := s.inlineCounters()
	removed := min(n, inlineCells)
	spans := sum(counters[:removed])
	copy(counters[:], counters[removed:])
	clear(counters[inlineCells-removed:])
	counters[0] += spans
	s.floorRank += uint16(n)
	a.memory.coarsened.Add(uint64(spans))
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

// Read adds the counts of the store to a sum.
func (s *Store) Read(a *Arena, to Sum) {
	to.AddZeros(uint64(s.zeros))
	switch s.form {
	case listed:
		for i := range uint(s.entries) {
			to.addCells(a.grid, s.entry(i), oneSpan)
		}
	case paged:
		for page, index := range s.pageIndexes() {
			if index != noPage {
				firstCell := uint(page * pageCells)
				to.addCells(a.grid, firstCell, a.page(index))
			}
		}
	case inline:
		counters := s.inlineCounters()
		for i := range counters {
			cell := a.grid.cellAt(uint(s.floorRank) + uint(i))
			to.addCells(a.grid, cell, counters[i:i+1])
		}
	}
}
