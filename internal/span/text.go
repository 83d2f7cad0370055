package span

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Text returns s as valid UTF-8 of at most limit bytes. It cuts before a rune,
// never within one, and replaces what is not UTF-8 by U+FFFD.
func Text(s string, limit int) string {
	switch {
	case isText(s, limit):
		return s
	case len(s) > limit && shorten(&s, limit):
		return strings.Clone(s) // or the cut text would hold on to all that was cut off
	}
	return string(appendText(nil, s, limit))
}

// Shorten cuts valid UTF-8 to at most limit bytes. The result is a part of the text.
func Shorten(text string, limit int) string {
	if len(text) > limit {
		shorten(&text, limit)
	}
	return text
}

// isText says whether a text can stay as it is.
func isText(s string, limit int) bool { return len(s) <= limit && isValid(s) }

// shorten cuts a text that is longer than the limit before the rune that lies on it. It
// reports false where there is none, or something before it must be replaced.
func shorten(s *string, limit int) bool {
	end := limit
	for end > 0 && !utf8.RuneStart((*s)[end]) {
		end--
	}
	if _, size := utf8.DecodeRuneInString((*s)[end:]); end+size <= limit || !isValid((*s)[:end]) {
		return false
	}
	*s = (*s)[:end]
	return true
}

// appendText appends a text as Text makes it. It goes through the bytes once, and looks at
// no more of them than may be kept: a label of a megabyte must not cost a megabyte of
// repair.
//
// In a text in another encoding a processor can't predict which bytes are ASCII. So ASCII
// bytes take no branch. Bytes that are not UTF-8 take none either: each byte of a run of them
// writes U+FFFD to the same place.
func appendText(dst []byte, s string, limit int) []byte {
	s = s[:min(len(s), limit+utf8.UTFMax)]
	begin := len(dst)
	dst = slices.Grow(dst, min(replacementBytes*len(s), limit)+utf8.UTFMax)
	to := dst[begin:cap(dst)]
	end, run := 0, 0 // run is replacementBytes within a run
	for at := 0; at < len(s) && end <= limit; {
		if isContinued(s, at) {
			if _, size := utf8.DecodeRuneInString(s[at:]); size > 1 {
				end += copy(to[end:], s[at:at+size])
				at, run = at+size, 0
				continue
			}
		}
		c := s[at]
		isReplaced := int(c >> 7)
		end -= run & -isReplaced
		binary.LittleEndian.PutUint32(to[end:],
			uint32(c)&^uint32(-isReplaced)|replacement&uint32(-isReplaced))
		run = replacementBytes * isReplaced
		end += max(1, run)
		at++
	}
	if end > limit {
		for end = limit; end > 0 && !utf8.RuneStart(to[end]); {
			end--
		}
	}
	return dst[:begin+end]
}

// isContinued says whether a byte may begin a character of several: it is not ASCII, and one
// follows that can't begin any.
func isContinued(s string, at int) bool {
	return at+1 < len(s) && (uint16(s[at])<<8|uint16(s[at+1]))&0x80C0 == 0x8080
}

// replacement is U+FFFD in UTF-8, the first byte lowest.
const (
	replacement      = 0xBDBFEF
	replacementBytes = 3
)

// stringOf are the same bytes, not a copy.
func stringOf(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
