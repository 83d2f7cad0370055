package span

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestLookTellsLabelsApart: other labels, other hashes, whatever differs: one byte
// at any place, or the length alone.
func TestLookTellsLabelsApart(t *testing.T) {
	for n := range 70 {
		text := []byte(strings.Repeat("x", n))
		hash, isASCII := Look(string(text))
		if again, _ := Look(strings.Clone(string(text))); again != hash || !isASCII {
			t.Fatalf("%d bytes: %x and %x, ASCII: %t", n, hash, again, isASCII)
		}
		if longer, _ := Look(string(text) + "x"); longer == hash {
			t.Errorf("%d and %d bytes have the same hash", n, n+1)
		}
		for i := range text {
			for _, c := range []byte{'y', 0, 0x7f, 0x80, 0xff} {
				text[i] = c
				other, isASCII := Look(string(text))
				if other == hash || isASCII != (c < 0x80) {
					t.Errorf("%q: same hash: %t, ASCII: %t", text, other == hash, isASCII)
				}
			}
			text[i] = 'x'
		}
	}
}

// TestLookSpreads: neighbours of a flood fall into all parts of a table, by the lower
// half of the hash and by the upper.
func TestLookSpreads(t *testing.T) {
	const labels, parts = 1 << 16, 256
	var lower, upper [parts]int
	for n := range labels {
		hash, _ := Look("GET /resource/" + strings.Repeat("0", 4) + string(rune('a'+n>>12)) + string(rune('a'+n>>6&63)) + string(rune('a'+n&63)))
		lower[hash%parts]++
		upper[hash>>56]++
	}
	for part := range parts {
		for _, n := range []int{lower[part], upper[part]} {
			if n < labels/parts*2/3 || n > labels/parts*3/2 {
				t.Fatalf("part %d has %d of %d", part, n, labels)
			}
		}
	}
}

// TestWordsAgreeWithBytes holds the quick looks at names against one byte at a time.
func TestWordsAgreeWithBytes(t *testing.T) {
	byByte := func(name string, class uint8) bool {
		for i := range len(name) {
			if classes[name[i]]&class == 0 {
				return false
			}
		}
		return name != ""
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	common := "_abcxyzABCXYZ0189.-/:_@[`{ \x1f\x7f\x80\xff"
	plain := 0
	for range 300_000 {
		name := []byte(strings.Repeat("a", 1+rnd.IntN(50)))
		for i := range name {
			switch rnd.IntN(12) {
			case 0:
				name[i] = byte(rnd.Uint32())
			case 1:
				name[i] = common[rnd.IntN(len(common))]
			}
		}
		if got, want := isServiceName(string(name)), byByte(string(name), ofService); got != want {
			t.Fatalf("service %q: %t, want %t", name, got, want)
		}
		if len(name) >= 8 && isServiceText(string(name)) != byByte(string(name), ofService) {
			t.Fatalf("service %q by words", name)
		}
		if isOperationText(string(name)) {
			plain++
			if !byByte(strings.ReplaceAll(string(name), ".", "a"), ofOperation) {
				t.Fatalf("operation %q", name)
			}
		}
		if got, want := IsOperationName(string(name)), operationName(string(name)) == string(name); got && !want {
			t.Fatalf("operation %q can stay: %t, want %t", name, got, want)
		}
		plainHash, _ := Look(string(name))
		if hash, isName := LookService(string(name)); hash != plainHash || isName != IsServiceName(string(name)) {
			t.Fatalf("service %q can stay at a look: %t; its hash is the same: %t", name, isName, hash == plainHash)
		}
		if hash, isName := LookOperation(string(name)); hash != plainHash || isName != IsOperationName(string(name)) {
			t.Fatalf("operation %q can stay at a look: %t; its hash is the same: %t", name, isName, hash == plainHash)
		}
	}
	if plain == 0 {
		t.Error("no operation was plain")
	}
}
