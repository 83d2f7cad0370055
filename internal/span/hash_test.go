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

// TestALookAtANameAgreesWithItsRules: the hash is the label's, and what can stay is
// what rewriting leaves.
func TestALookAtANameAgreesWithItsRules(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	common := "_abcxyzABCXYZ0189.-/:_@[`{ \x1f\x7f\x80\xff"
	for range 100_000 {
		text := []byte(strings.Repeat("a", 1+rnd.IntN(50)))
		for i := range text {
			switch rnd.IntN(12) {
			case 0:
				text[i] = byte(rnd.Uint32())
			case 1:
				text[i] = common[rnd.IntN(len(common))]
			}
		}
		name := string(text)
		hash, _ := Look(name)
		ofService, isService := LookService(name)
		ofOperation, isOperation := LookOperation(name)
		if ofService != hash || ofOperation != hash {
			t.Fatalf("%q has hashes %x, %x and %x", name, hash, ofService, ofOperation)
		}
		if isService && serviceName(name, "") != name || isOperation && operationName(name) != name {
			t.Fatalf("%q can stay as service: %t, as operation: %t", name, isService, isOperation)
		}
	}
}
