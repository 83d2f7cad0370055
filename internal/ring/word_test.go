package ring

import "testing"

// TestWord_Fields expects that a word contains length and skip of its run, and distinguishes its position
// from all others with the same index.
func TestWord_Fields(t *testing.T) {
	for _, shift := range []uint{0, 1, 3, 13, 24} {
		size := uint64(1) << shift
		for _, lap := range []uint64{1, 2, 3, 1 << 20, 1<<(63-shift) - 1} {
			at := lap<<shift | 5&(size-1)
			for _, n := range []uint64{1, (size + 1) / 2, size} {
				for _, skip := range []bool{false, true} {
					w := wordOf(at, n, skip, shift)
					if !w.publishes(at, shift) || w.length(size-1) != n || w.skipped() != skip {
						t.Errorf("word %#x of %d slots at %d (skip: %t) reads as %d slots, skip: %t",
							w, n, at, skip, w.length(size-1), w.skipped())
					}
					for _, laps := range []uint64{1, 2, 1 << 32} {
						if w.publishes(at+laps*size, shift) {
							t.Errorf("word %#x of position %d is equal to one %d laps later", w, at, laps)
						}
					}
				}
			}
		}
		if word(0).publishes(size, shift) {
			t.Errorf("fresh memory is read as a run of a ring of %d slots", size)
		}
	}
}
