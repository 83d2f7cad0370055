package aggregate

// distribution is the counts of one merged sketch, of any mapping: a list of pages.
// Unlike a store it never collapses: its pages are set aside before anything is
// added, or nothing is.
type distribution struct {
	zeros uint64
	first uint32 // number of a page, 0 for none
}

// linked is an arena whose pages know which bins they count. It has one user at a
// time.
type linked struct {
	arena
	links []link // by page number
}

type link struct {
	next uint32 // page of the same distribution, 0 for none
	at   uint16 // which 64 bins
}

// pagesOf is how many pages such bins can need.
func pagesOf(list []Bin) (pages int) {
	last := -1
	for _, bin := range list {
		if at := int(bin.Index / pageBins); at != last {
			pages, last = pages+1, at
		}
	}
	return pages
}

// reserve sets so many pages aside, if that takes no more than most chunks in all.
func (l *linked) reserve(pages, most int) bool {
	chunks := (int(max(l.next, 1)) + pages + chunkPages - 1) / chunkPages
	if chunks > most {
		return false
	}
	for len(l.chunks) < chunks {
		c := l.memory.take()
		if c == nil {
			return false // what was taken is given back with the rest
		}
		l.chunks = append(l.chunks, c)
	}
	if room := chunks * chunkPages; room > len(l.links) {
		l.links = append(make([]link, 0, room), l.links...)[:room]
	}
	return true
}

// add adds bins to a distribution.
func (l *linked) add(d *distribution, b *Bins) {
	d.zeros += b.Zeros
	at, ref := uint16(0), uint32(0)
	for _, bin := range b.List {
		if page := bin.Index / pageBins; ref == 0 || page != at {
			at, ref = page, l.pageOf(d, page)
		}
		l.raise(ref, uint(bin.Index%pageBins), bin.Spans)
	}
}

// pageOf finds a distribution's page, or gives it one of those set aside.
func (l *linked) pageOf(d *distribution, at uint16) uint32 {
	for ref := d.first; ref != 0; ref = l.links[ref].next {
		if l.links[ref].at == at {
			return ref
		}
	}
	ref := l.draw()
	if ref == 0 {
		panic("BUG: more pages than were set aside")
	}
	l.links[ref] = link{next: d.first, at: at}
	d.first = ref
	return ref
}

// read adds what was counted to a sketch.
func (l *linked) read(d *distribution, into *Sketch) {
	into.zeros += d.zeros
	for ref := d.first; ref != 0; ref = l.links[ref].next {
		l.readPage(ref, uint(l.links[ref].at), into)
	}
}
