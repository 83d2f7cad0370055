package span

import (
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// inService is what a character becomes in the name of a service, 0 where it can't stay. A
// character takes two searches in the tables of Unicode, and a flood of names in another
// script hundreds a span. So the answers for 256 neighbouring characters are made together,
// when the first of them is met: 512 bytes, but where all stay as they are or none stays. All
// planes with letters in them take 60 KiB.
func inService(r rune) rune {
	if r > lastLetter {
		return searchInService(r)
	}
	known := knownInService[r>>8].Load()
	if known == nil {
		known = answersFrom(r &^ 0xff)
		knownInService[r>>8].Store(known) // the same, whoever stores it
	}
	step := known[r&0xff]
	if step == goes {
		return 0
	}
	return r&^0xffff | rune(uint16(r)+step)
}

// answers are what is added to each of 256 characters, within its plane, or goes.
type answers [256]uint16

const (
	goes       = 1 << 15 // the character, since it can't stay
	lastLetter = 0x3ffff // and more: the end of its plane
)

var (
	knownInService [(lastLetter + 1) >> 8]atomic.Pointer[answers]
	allStay        answers
	noneStays      = func() (of answers) {
		for i := range of {
			of[i] = goes
		}
		return of
	}()
)

// answersFrom are those from a character on.
func answersFrom(first rune) *answers {
	made := new(answers)
	for i := range made {
		made[i] = goes
		if r := first | rune(i); searchInService(r) != 0 {
			made[i] = uint16(searchInService(r) - r)
		}
	}
	switch *made {
	case allStay:
		return &allStay
	case noneStays:
		return &noneStays
	}
	return made
}

// searchInService is inService as the agent says it.
func searchInService(r rune) rune {
	if r = lower(r); isTagRune(r) {
		return r
	}
	return 0
}

// isTagRune says whether a rune stays, and is no run's '_'.
func isTagRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(":./-", r)
}

// lower is the lower case of a rune where that is as long, as the agent does it.
func lower(r rune) rune {
	if low := unicode.ToLower(r); unicode.IsUpper(r) && utf8.RuneLen(low) == utf8.RuneLen(r) {
		return low
	}
	return r
}
