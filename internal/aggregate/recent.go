package aggregate

// recent is the durations of a row's last spans without an error, which are put into
// its sketch all at once: a cache line that is written from one end to the other, where
// each span would ask for a line of the bin table, one of the sketch's page numbers and
// one of its pages. Of a batch hardly two spans have the same key, so those were cold.
type recent [recentSpans]truncated

const recentSpans = 32

// sketch puts what is recent of a row into its sketch.
func (t *Table) sketch(row *Aggregate, at int) {
	t.ok[at].addAll(&t.pages, row.recent[:row.recents])
	row.recents = 0
}

// addAll counts many spans. It is the hot path's part of addBin.
func (s *store) addAll(a *arena, durations []truncated) {
	chunks := a.chunks
	for _, duration := range durations {
		bin := duration.bin()
		if s.form != paged {
			s.place(a, bin)
			chunks = a.chunks
			continue
		}
		ref := s.words[bin/pageBins]
		if ref == 0 {
			s.place(a, bin)
			chunks = a.chunks
			continue
		}
		counter := &chunks[ref/chunkPages][ref%chunkPages][bin%pageBins]
		*counter++
		if *counter == 0 {
			a.carry(pageKey(ref, bin%pageBins), 1)
		}
	}
}
