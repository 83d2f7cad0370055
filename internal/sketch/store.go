package sketch

// Store is the counts of one sketch. It costs what is used, not
// the range between the ends, and holds no pointer. It is in one of three forms:
//
//   - a list of the first spans' bins, in the order of their coming. Most
//     aggregates of a flood, and all that see a few spans, stay one.
//   - paged: for each 64 bins the number of the page that counts them, or 0. All
//     bins that a duration can have fit, so that nothing is collapsed here; the
//     reader does that, as the library would have (see Sketch). An add is one
//     look-up for the bin, one for its page, and an increment.
//   - pinched: the highest 68 bins in place, for a sketch that would need pages
//     when there are none.
//
// When Memory is used up, a sketch does what the library does beyond its
// 2048 bins, only earlier: the lowest bins collapse into the lowest that is kept,
// the floor. Its highest bins, and so its high percentiles, stay exact; no span is
// lost. A paged sketch gives up its lowest page for one higher up.
type Store struct {
	zeros uint64
	floor uint16 // lower bins are counted in this one; 0 but where memory ran out
	form  form
	used  uint8            // entries of a list
	words [allPages]uint32 // list: two bins a word; paged: page numbers; pinched: its number, then two counters a word
}

type form uint8

const (
	listed form = iota
	paged
	pinched
)

const (
	listBins    = 2 * allPages
	pinchedBins = 2 * (allPages - 1)
)

// Add counts one span of that many nanoseconds, unweighted, as the agent does.
func (s *Store) Add(a *Arena, nanoseconds uint64) {
	if nanoseconds == 0 {
		s.zeros++
		return
	}
	s.addBin(a, binOf(nanoseconds))
}

func (s *Store) addBin(a *Arena, bin uint) {
	if s.form == paged {
		if ref := s.words[bin/pageBins]; ref != 0 {
			a.count(ref, bin)
			return
		}
	}
	s.place(a, bin)
}

// place counts one span wherever there is no page for it yet.
func (s *Store) place(a *Arena, bin uint) {
	switch {
	case s.form == paged:
		s.placePaged(a, bin)
	case s.form == pinched:
		s.placePinched(a, bin)
	case s.used < listBins:
		s.setHalf(uint(s.used), uint16(bin))
		s.used++
	default:
		list := *s
		s.form, s.used, s.words = paged, 0, [allPages]uint32{}
		for i := range uint(listBins) {
			s.place(a, uint(list.half(i)))
		}
		s.place(a, bin)
	}
}

func (s *Store) placePaged(a *Arena, bin uint) {
	if bin >= uint(s.floor) && s.words[bin/pageBins] == 0 {
		s.open(a, bin)
		if s.form == pinched {
			s.placePinched(a, bin)
			return
		}
	}
	if bin < uint(s.floor) {
		bin = uint(s.floor)
		a.memory.coarsened.Add(1)
	}
	a.count(s.words[bin/pageBins], bin)
}

// open finds a page for a bin that has none, or raises the floor above the bin.
func (s *Store) open(a *Arena, bin uint) {
	at := int(bin / pageBins)
	if ref := a.draw(); ref != 0 {
		s.words[at] = ref
		return
	}
	switch lowest := s.lowestPage(); {
	case lowest < 0:
		a.pinched++
		s.form, s.floor = pinched, uint16(max(int(bin)-pinchedBins+1, 0))
		s.words[0] = a.pinched
	case lowest > at:
		s.floor = uint16(lowest * pageBins)
	default:
		ref := s.words[lowest]
		spans := a.empty(ref)
		s.words[lowest], s.words[at] = 0, ref
		lowest = s.lowestPage()
		s.floor = uint16(lowest * pageBins)
		a.raise(s.words[lowest], 0, spans)
		a.memory.coarsened.Add(spans)
	}
}

// lowestPage is the place of the lowest page in use, or -1.
func (s *Store) lowestPage() int {
	for i, ref := range s.words {
		if ref != 0 {
			return i
		}
	}
	return -1
}

func (s *Store) placePinched(a *Arena, bin uint) {
	if bin >= uint(s.floor)+pinchedBins {
		s.lift(a, bin-pinchedBins+1)
	}
	if bin < uint(s.floor) {
		bin = uint(s.floor)
		a.memory.coarsened.Add(1)
	}
	s.raisePinched(a, bin, 1)
}

func (s *Store) raisePinched(a *Arena, bin uint, spans uint64) {
	place := bin - uint(s.floor) + 2 // behind the number
	sum := uint64(s.half(place)) + spans
	s.setHalf(place, uint16(sum))
	a.carry(pinchedKey(s.words[0], bin), sum>>16)
}

// lift raises the floor of a pinched sketch and collapses what falls below.
func (s *Store) lift(a *Arena, floor uint) {
	old, from := *s, uint(s.floor)
	clear(s.words[1:])
	s.floor = uint16(floor)
	var below uint64
	for i := range uint(pinchedBins) {
		switch counter := old.half(i + 2); {
		case from+i < floor:
			below += uint64(counter) + a.uncarry(pinchedKey(s.words[0], from+i))
		default:
			s.setHalf(from+i-floor+2, counter)
		}
	}
	s.raisePinched(a, floor, below)
	a.memory.coarsened.Add(below)
}

// half and setHalf read and write one of the two numbers in a word.
func (s *Store) half(i uint) uint16 { return uint16(s.words[i/2] >> (i % 2 * 16)) }

func (s *Store) setHalf(i uint, n uint16) {
	shift := i % 2 * 16
	s.words[i/2] = s.words[i/2]&^(0xffff<<shift) | uint32(n)<<shift
}

// Read adds what the Store has counted to a sketch.
func (s *Store) Read(a *Arena, into *Sketch) {
	into.zeros += s.zeros
	switch s.form {
	case listed:
		for i := range uint(s.used) {
			into.AddBin(uint(s.half(i)), 1)
		}
	case paged:
		for i, ref := range s.words {
			if ref != 0 {
				a.readPage(ref, uint(i), into)
			}
		}
	case pinched:
		for i := range uint(pinchedBins) {
			bin := uint(s.floor) + i
			into.AddBin(bin, uint64(s.half(i+2))+a.carried(pinchedKey(s.words[0], bin)))
		}
	}
}

// readPage adds up without asking which counters are 0: on a page that is half
// empty, that question is answered wrong as often as not, and took twice the time
// of all the rest.
func (a *Arena) readPage(ref uint32, at uint, into *Sketch) {
	counts, used := (*[pageBins]uint64)(into.counts[at*pageBins:]), uint64(0)
	for place, counter := range a.page(ref) {
		counts[place] += uint64(counter)
		used |= (uint64(counter) + 0xffff) >> 16 << place // 1 but for 0
	}
	into.used[at] |= used
	into.pages = max(into.pages, int(at)+1)
	if len(a.carries) == 0 {
		return
	}
	for place := range uint(pageBins) {
		into.AddBin(at*pageBins+place, a.carried(pageKey(ref, place)))
	}
}
