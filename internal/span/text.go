package span

import (
	"strings"
	"unicode/utf8"
)

// Text returns s as valid UTF-8 of at most limit bytes. It cuts before a rune,
// never within one, and replaces what is not UTF-8 by U+FFFD.
func Text(s string, limit int) string {
	if trim(&s, limit) {
		// A copy, or the cut text would hold on to all that was cut off.
		return strings.Clone(s)
	}
	return s
}

// trim makes a text valid UTF-8 within its limit. What it leaves may be a part of what
// was there.
func trim(s *string, limit int) (changed bool) {
	if len(*s) <= limit && utf8.ValidString(*s) {
		return false
	}
	*s = cut(*s, limit)
	return true
}

// cut is trim for a text that is over its limit or invalid.
func cut(s string, limit int) string {
	// Cut first: a label of a megabyte must not cost a megabyte of repair.
	if len(s) > limit+utf8.UTFMax {
		s = s[:limit+utf8.UTFMax]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
