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

// AppendTagValue appends text normalized like the agent normalizes a tag value: letters in lower
// case, digits and ./:- unchanged, and one underscore for each sequence of other characters between
// them.
func AppendTagValue(dst []byte, text string) []byte {
	runes, gap := 0, false
	for offset := 0; offset < len(text); {
		r, width := utf8.DecodeRuneInString(text[offset:])
		offset += width
		if low := unicode.ToLower(r); unicode.IsUpper(r) && utf8.RuneLen(low) == width {
			r = low
		}
		isError := r == utf8.RuneError && width == 1
		isKept := unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("./-:", r)
		if runes++; isKept && !isError {
			if gap {
				dst = append(dst, '_')
			}
			dst, gap = utf8.AppendRune(dst, r), false
		} else {
			gap = true
		}
		if offset >= maxTagBytes || runes >= maxTagRunes {
			break
		}
	}
	return dst // a gap at the end adds no underscore
}

// IsTagValue reports whether AppendTagValue would not change text. It is fast, but may report false
// for a text with letters beyond ASCII that would not change either.
func IsTagValue(text []byte) bool {
	gap := false
	for _, b := range text {
		switch {
		case 'a' <= b && b <= 'z', '-' <= b && b <= ':': // '-' to ':' are also dot, slash and digits
			gap = false
		case b == '_' && !gap:
			gap = true
		default:
			return false
		}
	}
	return !gap && len(text) <= maxTagRunes
}
