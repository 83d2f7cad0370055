package sketch

// Store is the counts of one sketch while spans are added. It takes memory for the bins
// that are used, not for the range between them, and holds no pointer. It is in one of
// three forms:
//
//   - listed: the bins of the first spans, in the order of their arrival. It needs no
//     page, and most stores of a flood never become another one.
//   - paged: for each 64 bins the number of the page that counts them, or 0. The bins of
//     all durations fit, so nothing is collapsed here; Sketch does that at the end, as
//     the library would have done it.
//   - inline: counters of 35 neighbouring bins in place of the page numbers, for a store
//     that would need its first page when there is none.
//
// When Memory is used up, a store does what the library does beyond its 2048 bins, only
// earlier: it collapses its lowest bins into the lowest one that it keeps, the floor. No
// span is lost, and the highest bins, and so the high percentiles, stay exact.
type Store struct {
	zeros   uint64
	floor   uint16 // lower bins are counted in this one; 0 while there is memory
	form    form
	entries uint8            // of the list
	words   [allPages]uint32 // the list, two bins a word; page numbers; or counters from the floor on
}

type form uint8

const (
	listed form = iota
	paged
	inline
)

const (
	allPages = (allBins + pageBins - 1) / pageBins // for the bins of all durations
	listBins = 2 * allPages
)

// Add counts one span of that many nanoseconds, unweighted, as the agent does.
func (s *Store) Add(a *Arena, nanoseconds uint64) {
	if nanoseconds == 0 {
		s.zeros++
		return
	}
	bin := binOf(nanoseconds)
	if s.form == paged {
		if number := s.words[bin/pageBins]; number != 0 {
			a.page(number)[bin%pageBins]++
			return
		}
	}
	s.addBin(a, bin)
}

// addBin counts a span of any bin in whatever form the store has.
func (s *Store) addBin(a *Arena, bin uint) {
	switch {
	case s.form == inline:
		s.addInline(a, bin)
	case s.form == paged && s.words[bin/pageBins] != 0:
		a.page(s.words[bin/pageBins])[bin%pageBins]++
	case s.form == paged:
		s.addPage(a, bin)
	case s.entries < listBins:
		s.words[s.entries/2] |= uint32(bin) << (s.entries % 2 * 16)
		s.entries++
	default:
		list := *s
		*s = Store{zeros: s.zeros, form: paged}
		for i := range uint(listBins) {
			s.addBin(a, list.entry(i))
		}
		s.addBin(a, bin)
	}
}

func (s *Store) entry(i uint) uint { return uint(uint16(s.words[i/2] >> (i % 2 * 16))) }

// addPage counts a span of a bin that has no page in a new one, or without memory in
// place of the lowest page, or in the floor.
func (s *Store) addPage(a *Arena, bin uint) {
	at, lowest := int(bin/pageBins), s.lowestPage()
	switch {
	case bin < uint(s.floor):
	case s.newPage(a, at):
		a.page(s.words[at])[bin%pageBins]++
		return
	case lowest < 0:
		s.form, s.floor = inline, uint16(max(int(bin)-(allPages-1), 0))
		s.addInline(a, bin)
		return
	case lowest < at:
		s.replaceLowestPage(a, lowest, at)
		s.addBin(a, bin)
		return
	default:
		s.floor = uint16(lowest * pageBins)
	}
	s.addBin(a, uint(s.floor))
	a.memory.coarsened.Add(1)
}

func (s *Store) newPage(a *Arena, at int) bool {
	s.words[at] = a.newPage()
	return s.words[at] != 0
}

// lowestPage is the place of the lowest page, or -1.
func (s *Store) lowestPage() int {
	for i, number := range s.words {
		if number != 0 {
			return i
		}
	}
	return -1
}

// replaceLowestPage makes the lowest page one of higher bins. What it counted goes to
// the floor, which is the first bin of the lowest page then.
func (s *Store) replaceLowestPage(a *Arena, lowest, at int) {
	number := s.words[lowest]
	spans := sum(a.page(number)[:])
	*a.page(number) = page{}
	s.words[lowest], s.words[at] = 0, number
	lowest = s.lowestPage()
	s.floor = uint16(lowest * pageBins)
	a.page(s.words[lowest])[0] += spans
	a.memory.coarsened.Add(uint64(spans))
}

// addInline counts a span in place. A bin above the counters raises the floor.
func (s *Store) addInline(a *Arena, bin uint) {
	if above := int(bin) - int(s.floor) - (allPages - 1); above > 0 {
		cut := min(above, allPages)
		below := sum(s.words[:cut])
		copy(s.words[:], s.words[cut:])
		clear(s.words[allPages-cut:])
		s.words[0] += below
		s.floor += uint16(above)
		a.memory.coarsened.Add(uint64(below))
	}
	if bin < uint(s.floor) {
		bin = uint(s.floor)
		a.memory.coarsened.Add(1)
	}
	s.words[bin-uint(s.floor)]++
}

func sum(counters []uint32) (spans uint32) {
	for _, n := range counters {
		spans += n
	}
	return spans
}

// Read adds what the store has counted to a sketch.
func (s *Store) Read(a *Arena, to *Sketch) {
	to.AddZeros(s.zeros)
	switch s.form {
	case listed:
		for i := range uint(s.entries) {
			to.AddBin(s.entry(i), 1)
		}
	case paged:
		for i, number := range s.words {
			if number != 0 {
				to.addCounters(uint(i)*pageBins, a.page(number)[:])
			}
		}
	case inline:
		to.addCounters(uint(s.floor), s.words[:])
	}
}
