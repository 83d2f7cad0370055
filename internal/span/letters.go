package span

import (
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// inService is what a character becomes in the name of a service, 0 where it can't stay. A
// character takes two searches in the tables of Unicode, and a flood of names in another
// script hundreds a span. So the answers for 256 neighbouring characters are made
// together, when the first of them is met: 512 bytes, and 128 KiB for all there are of up
// to three bytes. Those of four bytes are searched for each time.
func inService(r rune) rune {
	if r > maxKnown {
		return searchInService(r)
	}
	answers := knownInService[r>>8].Load()
	if answers == nil {
		answers = new([256]uint16)
		for i := range answers {
			answers[i] = uint16(searchInService(r&^0xff | rune(i)))
		}
		knownInService[r>>8].Store(answers) // the same, whoever stores it
	}
	return rune(answers[r&0xff])
}

// maxKnown is the last character of up to three bytes.
const maxKnown = 0xFFFF

var knownInService [(maxKnown + 1) >> 8]atomic.Pointer[[256]uint16]

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
