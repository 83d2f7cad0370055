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

// AppendTagValue appends text to dst, normalized like the value of a tag in the Datadog agent. Letters
// become lower case, and digits and "./:-" stay. Each run of other characters becomes one underscore; a
// run at the end of text is removed. Characters of text after the first 200, or after 400 bytes, are
// ignored.
func AppendTagValue(dst []byte, text string) []byte {
	needsUnderscore := false
	offset := 0
	end := min(len(text), maxTagBytes)
	for runes := 0; runes < maxTagRunes && offset < end; runes++ {
		r, width := utf8.DecodeRuneInString(text[offset:])
		offset += width
		r = lowerCase(r, width)
		isInvalidUTF8 := r == utf8.RuneError && width == 1
		if isInvalidUTF8 || !isTagRune(r) {
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

// lowerCase returns the lower case of r, a character with the given number of bytes. Like the agent, it returns r itself
// if its lower case has another number of bytes.
func lowerCase(r rune, width int) rune {
	lower := unicode.ToLower(r)
	if unicode.IsUpper(r) && utf8.RuneLen(lower) == width {
		return lower
	}
	return r
}

// isTagRune reports whether the agent keeps a character in the value of a tag.
func isTagRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("./-:", r)
}

// IsTagValue reports whether AppendTagValue would append text without a change. It returns false for
// every text with a character that is not ASCII, even if AppendTagValue would keep it.
func IsTagValue(text []byte) bool {
	endsWithUnderscore := false
	for _, b := range text {
		isLetter := 'a' <= b && b <= 'z'
		isDigitOrPunctuation := '-' <= b && b <= ':' // one of -./0123456789:
		switch {
		case isLetter || isDigitOrPunctuation:
			endsWithUnderscore = false
		case b == '_' && !endsWithUnderscore:
			endsWithUnderscore = true
		default:
			return false
		}
	}
	return !endsWithUnderscore && len(text) <= maxTagRunes
}
