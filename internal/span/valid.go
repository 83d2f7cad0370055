package span

import "unicode/utf8"

// isValid says whether a text is UTF-8. Nearly all texts are ASCII, which shows eight bytes at
// a time. Other texts go through an automaton, because in a text of several scripts a
// processor can't predict how many bytes the next character has; but long texts mostly have
// one script.
func isValid(text string) bool {
	if len(text) > mixedBytes {
		return utf8.ValidString(text)
	}
	if last := len(text) - wordBytes; last >= 0 {
		at := 0
		for at < last && wordAt(text, at)&highs == 0 {
			at += wordBytes
		}
		if at >= last && wordAt(text, last)&highs == 0 {
			return true
		}
		text = text[min(at, last):]
	}
	state := uint64(accepts)
	for i := range len(text) {
		state = afterByte[text[i]] >> (state & 63)
	}
	return state&63 == accepts
}

// mixedBytes is how long a text of several scripts mostly is.
const mixedBytes = 256

// The states of the automaton. Each is a number of bits: so far a byte's number is shifted
// for the state behind it.
const (
	refuses    = 6 * iota // for ever
	accepts               // a character ended
	needsOne              // more byte
	needsTwo              // more bytes
	needsThree            //
	afterE0               // as the first of three bytes, which might be written with two
	afterED               // the same, which might be half of a pair of UTF-16
	afterF0               // as the first of four bytes, which might be written with three
	afterF4               // the same, which might be beyond the last character
)

// afterByte is by byte, for each state, what state follows.
var afterByte = func() (after [256]uint64) {
	for _, step := range []struct{ in, from, to, next uint64 }{
		{accepts, 0x00, 0x7f, accepts},
		{accepts, 0xc2, 0xdf, needsOne},
		{accepts, 0xe0, 0xe0, afterE0},
		{accepts, 0xe1, 0xec, needsTwo},
		{accepts, 0xed, 0xed, afterED},
		{accepts, 0xee, 0xef, needsTwo},
		{accepts, 0xf0, 0xf0, afterF0},
		{accepts, 0xf1, 0xf3, needsThree},
		{accepts, 0xf4, 0xf4, afterF4},
		{needsOne, 0x80, 0xbf, accepts},
		{needsTwo, 0x80, 0xbf, needsOne},
		{needsThree, 0x80, 0xbf, needsTwo},
		{afterE0, 0xa0, 0xbf, needsOne},
		{afterED, 0x80, 0x9f, needsOne},
		{afterF0, 0x90, 0xbf, needsTwo},
		{afterF4, 0x80, 0x8f, needsTwo},
	} {
		for c := step.from; c <= step.to; c++ {
			after[c] |= step.next << step.in
		}
	}
	return after
}()
