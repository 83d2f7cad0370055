package template

import (
	"math/rand/v2"
	"testing"
)

// TestLookAgreesWithOneThatTakesAByteAtATime, also of texts of more than a block.
func TestLookAgreesWithOneThatTakesAByteAtATime(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 20))
	for i := range 20_000 {
		text := make([]byte, rnd.IntN(40))
		if i%100 == 0 {
			text = make([]byte, rnd.IntN(maxText))
		}
		for i := range text {
			text[i] = "0123456789abcdefxyzABCDEFXYZ-_.:\xff"[rnd.IntN(33)]
		}
		if got, want := look(string(text)), lookByBytes(string(text)); got != want {
			t.Fatalf("%q looks like %+v, want %+v", text, got, want)
		}
	}
}

func lookByBytes(text string) (l looks) {
	last := byte(0)
	for i := range len(text) {
		c := text[i]
		class := byte('?')
		switch {
		case isDigit(c):
			class = '0'
			l.digits++
		case isUpper(c):
			class = 'A'
			l.uppers++
		case isLetter(c):
			class = 'a'
			l.lowers++
		case c == '-' || c == '_':
			l.dashes++
		default:
			l.others++
		}
		if isLetter(c) && isHex(c) {
			l.hex++
		}
		if i > 0 && class != last {
			l.changes++
			if class == '0' || last == '0' {
				l.borders++
			}
		}
		if class == 'A' && last == 'A' {
			l.pairs++
		}
		last = class
	}
	return l
}
