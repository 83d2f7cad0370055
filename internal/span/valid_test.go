package span

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// TestValidAgreesWithTheStandardLibrary of everything that a character may begin with, and
// of texts of many lengths.
func TestValidAgreesWithTheStandardLibrary(t *testing.T) {
	check := func(text []byte) {
		if got, want := isValid(string(text)), utf8.Valid(text); got != want {
			t.Fatalf("%q is valid: %t", text, got)
		}
	}
	edges := []byte{0, 'a', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff}
	for first := range 256 {
		for second := range 256 {
			check([]byte{byte(first), byte(second)})
			for _, third := range edges {
				check([]byte{byte(first), byte(second), third})
				for _, fourth := range edges {
					check([]byte{byte(first), byte(second), third, fourth})
				}
			}
		}
	}
	rnd := rand.New(rand.NewPCG(1, 11))
	parts := []string{"a", "some words ", "é", "日", "🍣", "\xff", "\xe6\x97", "\x80"}
	for range 200_000 {
		text, most := []byte(nil), 1+rnd.IntN(len(parts))
		for range rnd.IntN(40) {
			text = append(text, parts[rnd.IntN(most)]...)
		}
		check(text)
	}
}
