package span

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestEightBytesAtATimeSayWhatEachByteSays of names and texts in which one byte, at any
// place, is any.
func TestEightBytesAtATimeSayWhatEachByteSays(t *testing.T) {
	rnd := rand.New(rand.NewPCG(20, 11))
	const good = "abcxyz019.-/:_AZ"
	for range 300_000 {
		text := make([]byte, rnd.IntN(110))
		alphabet := good[:1+rnd.IntN(len(good))]
		for i := range text {
			text[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		for range min(len(text), rnd.IntN(3)) {
			text[rnd.IntN(len(text))] = byte(rnd.Uint32())
		}
		name := string(text)
		if got, want := IsServiceName(name), isServiceByBytes(name); got != want {
			t.Fatalf("%q is the name of a service: %t", name, got)
		}
		if got, want := isOperationName(name), isOperationByBytes(name); got != want {
			t.Fatalf("%q is the name of an operation: %t", name, got)
		}
		count := 0
		for i := range len(name) {
			if name[i] >= utf8.RuneSelf {
				count++
			}
		}
		if got := beyondASCII(name); got != count {
			t.Fatalf("of %q %d bytes are not ASCII", name, got)
		}
	}
}

func isServiceByBytes(name string) bool {
	other := func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789.-/:", r) }
	return name != "" && len(name) <= MaxService && strings.IndexFunc(name, other) < 0
}

func isOperationByBytes(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for i := range len(name) {
		switch {
		case strings.IndexByte(letters, name[i]) >= 0, i > 0 && strings.IndexByte("0123456789", name[i]) >= 0:
		case i == 0, name[i] != '.' && name[i] != '_', name[i-1] == '_':
			return false
		}
	}
	return name != "" && len(name) <= MaxOperation && name[len(name)-1] != '_'
}
