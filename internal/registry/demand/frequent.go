package demand

import (
	"bytes"
	"cmp"
	"slices"
)

const (
	candidateCount = 16 // values that Frequent observes at the same time

	candidateBytes = 8 + 40 + 12 // hash, candidate, and rounding by the allocator

	// MaxValueBytes is the length at which Frequent truncates a value.
	MaxValueBytes = 100
)

// Frequent finds the most frequent of many values with the Space-Saving algorithm. It observes 16 values
// at a time. A value with more than a 16th of all uses is always one of them. The zero value is empty.
type Frequent struct {
	hashes     []uint64    // hashes of the candidates, in the same order
	candidates []candidate // at most candidateCount
}

// candidate is a value that Frequent observes.
type candidate struct {
	text      []byte
	uses      uint64 // upper limit of the number of uses of the value
	overcount uint64 // maximum amount by which uses is too large
}

// Value is a frequent value.
type Value struct {
	Text string // the first MaxValueBytes bytes of the value
	Uses uint64 // lower limit of the number of uses
}

// Add counts a number of uses of a value, given its hash. Add does not retain text.
func (f *Frequent) Add(hash uint64, text string, uses uint64) {
	known := slices.Index(f.hashes, hash)
	switch {
	case known >= 0:
		f.candidates[known].uses += uses
	case len(f.candidates) < candidateCount:
		f.hashes = append(f.hashes, hash)
		f.candidates = append(f.candidates, candidate{text: []byte(truncate(text)), uses: uses})
	default:
		f.replaceRarest(hash, text, uses)
	}
}

// replaceRarest replaces the candidate with the fewest uses by a new value. The new value may have had earlier uses
// that were not observed, but at most as many as the replaced candidate had. They are added as its overcount.
func (f *Frequent) replaceRarest(hash uint64, text string, uses uint64) {
	rarest := 0
	for i := range f.candidates {
		if f.candidates[i].uses < f.candidates[rarest].uses {
			rarest = i
		}
	}
	replaced := &f.candidates[rarest]
	f.hashes[rarest] = hash
	replaced.text = append(replaced.text[:0], truncate(text)...)
	replaced.overcount = replaced.uses
	replaced.uses += uses
}

// truncate returns the first MaxValueBytes bytes of a text.
func truncate(text string) string { return text[:min(len(text), MaxValueBytes)] }

// Top returns up to limit values with the most certain uses, the most frequent first.
func (f *Frequent) Top(limit int) []Value {
	values := make([]Value, 0, len(f.candidates))
	for i := range f.candidates {
		c := &f.candidates[i]
		text := string(bytes.ToValidUTF8(c.text, nil)) // truncation can split a character
		values = append(values, Value{Text: text, Uses: c.uses - c.overcount})
	}
	slices.SortFunc(values, func(a, b Value) int {
		return cmp.Or(cmp.Compare(b.Uses, a.Uses), cmp.Compare(a.Text, b.Text))
	})
	return values[:min(len(values), limit)]
}

// Bytes is the maximum memory of a Distinct and a Frequent.
const Bytes = registerCount + candidateCount*(MaxValueBytes+candidateBytes)
