package aggregate

// recent is the durations of a row's last spans without an error, which are put into
// its sketch all at once: a cache line that is written from one end to the other, where
// each span would ask for a line of the bin table, one of the sketch's page numbers and
// one of its pages. Of a batch hardly two spans have the same key, so those were cold.
type recent [recentSpans]truncated

const recentSpans = 32

// sketch puts what is recent of a row into its sketch.
func (t *Table) sketch(row *Aggregate, at int) {
	durations := row.recent[:row.recents]
	for len(durations) > 0 {
		n, carry := t.ok[at].addSome(t.pages.chunks, durations)
		if durations = durations[n:]; carry != 0 {
			t.pages.carry(carry, 1)
		} else if len(durations) > 0 {
			t.ok[at].place(&t.pages, durations[0].bin())
			durations = durations[1:]
		}
	}
	row.recents = 0
}

// addSome counts spans up to one that has no page, and returns how many. It also stops
// behind the one whose counter wrapped around, and tells which that is. It is the hot
// path's part of addBin, and calls nothing.
//
//go:noinline
func (s *store) addSome(chunks []chunk, durations []truncated) (n int, carry carryKey) {
	if s.form != paged {
		return 0, 0
	}
	for i, duration := range durations {
		bin := duration.bin()
		ref := s.words[bin/pageBins]
		if ref == 0 {
			return i, 0
		}
		counter := &chunks[ref/chunkPages][ref%chunkPages][bin%pageBins]
		*counter++
		if *counter == 0 {
			return i + 1, pageKey(ref, bin%pageBins)
		}
	}
	return len(durations), 0
}
