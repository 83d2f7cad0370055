package rules

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The agent looks at no more of a tag's value.
const (
	maxTagRunes = 200
	maxTagBytes = 2 * maxTagRunes
)

// AppendTagValue appends a text as the agent writes the value of a tag: letters in lower
// case, digits and ./:- as they are, and one underscore for whatever else stands between
// them.
func AppendTagValue(dst []byte, text string) []byte {
	runes, gap := 0, false
	for at := 0; at < len(text); {
		r, width := utf8.DecodeRuneInString(text[at:])
		at += width
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
		if at >= maxTagBytes || runes >= maxTagRunes {
			break
		}
	}
	return dst // a gap at the end is nothing
}

// IsTagValue says of most texts that are values of a tag that they are. Of some it does not.
func IsTagValue(text []byte) bool {
	gap := false
	for _, b := range text {
		switch {
		case 'a' <= b && b <= 'z', '-' <= b && b <= ':': // and digits, dots and slashes between them
			gap = false
		case b == '_' && !gap:
			gap = true
		default:
			return false
		}
	}
	return !gap && len(text) <= maxTagRunes
}
