package span

import (
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Text returns s as valid UTF-8 of at most limit bytes. It cuts before a rune,
// never within one, and replaces what is not UTF-8 by U+FFFD.
func Text(s string, limit int) string {
	var m Mender
	if m.trim(&s, limit) {
		// A copy, or the cut text would hold on to all that was cut off.
		return strings.Clone(s)
	}
	return s
}

// Shorten cuts valid UTF-8 to at most limit bytes. What it returns is a part of the text.
func Shorten(text string, limit int) string {
	if len(text) > limit {
		shorten(&text, limit)
	}
	return text
}

// isText says whether a text can stay as it is.
func isText(s string, limit int) bool { return len(s) <= limit && utf8.ValidString(s) }

// shorten cuts a text that is longer than the limit before the rune that lies on it. It
// reports false where there is none, or something before it must be replaced.
func shorten(s *string, limit int) bool {
	end := limit
	for end > 0 && !utf8.RuneStart((*s)[end]) {
		end--
	}
	if _, size := utf8.DecodeRuneInString((*s)[end:]); end+size <= limit || !utf8.ValidString((*s)[:end]) {
		return false
	}
	*s = (*s)[:end]
	return true
}

// appendText appends a text as Text makes it. It goes through the bytes once, and looks at
// no more of them than may be kept: a label of a megabyte must not cost a megabyte of
// repair.
func appendText(dst []byte, s string, limit int) []byte {
	begin := len(dst)
	s = s[:min(len(s), limit+utf8.UTFMax)]
	for s != "" && len(dst)-begin <= limit {
		valid := validBytes(s)
		dst, s = append(dst, s[:valid]...), s[valid:]
		if s != "" {
			dst, s = append(dst, "\uFFFD"...), s[invalidBytes(s):]
		}
	}
	end := len(dst)
	if end > begin+limit {
		for end = begin + limit; end > begin && !utf8.RuneStart(dst[end]); {
			end--
		}
	}
	return dst[:end]
}

// validBytes is how many bytes a text begins with that are valid UTF-8.
func validBytes(s string) int {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		if size == 1 {
			return i
		}
		i += size
	}
	return len(s)
}

// invalidBytes is how many bytes a text begins with that are not UTF-8.
func invalidBytes(s string) (n int) {
	for n < len(s) && isInvalid(s[n:]) {
		n++
	}
	return n
}

// isInvalid says of a text that is not empty whether it begins with a byte that is not
// UTF-8.
func isInvalid(s string) bool {
	if s[0] < utf8.RuneSelf {
		return false
	}
	_, size := utf8.DecodeRuneInString(s)
	return size == 1
}

// stringOf are the same bytes, not a copy.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
