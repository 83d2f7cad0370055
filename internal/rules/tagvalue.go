package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The agent ignores the rest of a longer tag value.
const (
	maxTagRunes = 200
	maxTagBytes = 2 * maxTagRunes
)

// AppendTagValue normalizes text like the agent normalizes a tag value, and appends the result to
// dst. It converts letters to lower case, keeps digits and "./:-", and replaces each run of other
// characters by one underscore, except at the end.
func AppendTagValue(dst []byte, text string) []byte {
	needsUnderscore := false
	runes := 0
	for offset := 0; offset < min(len(text), maxTagBytes) && runes < maxTagRunes; runes++ {
		r, width := utf8.DecodeRuneInString(text[offset:])
		offset += width
		if lower := unicode.ToLower(r); unicode.IsUpper(r) && utf8.RuneLen(lower) == width {
			r = lower
		}
		isInvalidUTF8 := r == utf8.RuneError && width == 1
		isAllowed := unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("./-:", r)
		if !isAllowed || isInvalidUTF8 {
			needsUnderscore = true
			continue
		}
		if needsUnderscore {
			dst = append(dst, '_')
			needsUnderscore = false
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// IsTagValue reports whether AppendTagValue would copy text without a change. It checks only ASCII
// texts, and returns false for all others.
func IsTagValue(text []byte) bool {
	endsWithUnderscore := false
	for _, b := range text {
		switch {
		case 'a' <= b && b <= 'z', '-' <= b && b <= ':': // a letter, or one of -./0123456789:
			endsWithUnderscore = false
		case b == '_' && !endsWithUnderscore:
			endsWithUnderscore = true
		default:
			return false
		}
	}
	return !endsWithUnderscore && len(text) <= maxTagRunes
}
