package aggregate

import "github.com/spanstatsd/spanstatsd/internal/span"

// recent is the durations of a row's last spans, which are put into its sketches all at
// once: a cache line that is written from one end to the other, where each span would ask
// for a line of the bin table, one of the sketch's page numbers and one of its pages. Of a
// batch hardly two spans have the same key, so those were cold.
type recent [recentSpans]truncated

const (
	recentSpans = 32
	// recentError marks that of a span with an error. They are of 32 bits at most, which
	// leaves room for it.
	recentError truncated = 1 << errorBit
	errorBit              = mantissaBits + 6
)

func recentOf(s Slot) truncated {
	const lowest = factsShift // the flag of an error
	return truncatedOf(float64(s.value())) | truncated(s>>(lowest-errorBit))&recentError
}

const _ = uint(1 - span.Error) // it is

// readRecent adds those of a row that are marked so.
func (a *Aggregate) readRecent(mark truncated, to *Sketch) {
	for _, duration := range a.recent[:a.recents] {
		if duration&recentError == mark {
			to.count((duration &^ recentError).bin(), 1)
		}
	}
}

// sketch puts what is recent of a row into its sketches.
func (t *Table) sketch(row *Aggregate, at int) {
	durations := row.recent[:row.recents]
	for len(durations) > 0 {
		n, carry := t.ok[at].addSome(t.pages.chunks, durations)
		if durations = durations[n:]; carry != 0 {
			t.pages.carry(carry, 1)
		} else if len(durations) > 0 {
			t.addRecent(row, at, durations[0])
			durations = durations[1:]
		}
	}
	row.recents = 0
}

// addRecent puts any one into the sketch that it belongs to.
func (t *Table) addRecent(row *Aggregate, at int, duration truncated) {
	if bin := (duration &^ recentError).bin(); duration&recentError != 0 {
		t.errors(row).addBin(&t.pages, bin)
	} else {
		t.ok[at].addBin(&t.pages, bin)
	}
}

// addSome counts spans up to one that has an error or no page, and returns how many. It
// also stops behind the one whose counter wrapped around, and tells which that is. It is
// the hot path's part of addBin, and calls nothing.
//
//go:noinline
func (s *store) addSome(chunks []chunk, durations []truncated) (n int, carry carryKey) {
	if s.form != paged {
		return 0, 0
	}
	for i, duration := range durations {
		if duration >= recentError {
			return i, 0
		}
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
