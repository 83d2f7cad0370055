package otlpjson

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted is a text of JSON between its quotes. One that is plain stands there as it is.
type quoted struct {
	raw     []byte
	isPlain bool
}

// isPlainByte has the bytes that stand for themselves in a text, whatever is beside them.
var isPlainByte = func() (is [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// text steps over a text.
func (s *scanner) text() (quoted, error) {
	if s.next() != '"' {
		return quoted{}, errSyntax
	}
	b, isPlain := s.body[s.at+1:], true
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case isPlainByte[c]:
		case c == '"':
			s.at += i + 2
			return quoted{b[:i], isPlain}, nil
		case c == '\\':
			length := escapeLen(b[i:])
			if length == 0 {
				return quoted{}, errSyntax
			}
			i += length - 1
			isPlain = false
		case c < ' ':
			return quoted{}, errSyntax
		default:
			isPlain = false
		}
	}
	return quoted{}, errSyntax
}

// name steps over a name and the colon behind it.
func (s *scanner) name() (quoted, error) {
	name, err := s.text()
	if err == nil && s.next() != ':' {
		err = errSyntax
	}
	s.at++
	return name, err
}

// escapeLen is the length of an escape that begins with its backslash, 0 where it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if codeUnit(b) >= 0 {
			return 6
		}
	}
	return 0
}

// codeUnit is what \u with four digits stands for, -1 where there is none.
func codeUnit(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// appendTo appends what the text says. A surrogate without its other half, and a byte that is
// not of UTF-8, become U+FFFD.
func (t quoted) appendTo(dst []byte) []byte {
	if t.isPlain {
		return append(dst, t.raw...)
	}
	for b := t.raw; len(b) > 0; {
		if b[0] != '\\' {
			r, length := utf8.DecodeRune(b)
			dst, b = utf8.AppendRune(dst, r), b[length:]
			continue
		}
		r, length := escaped(b)
		dst, b = utf8.AppendRune(dst, r), b[length:]
	}
	return dst
}

// escaped is what an escape stands for, or two of them that are the halves of one.
func escaped(b []byte) (r rune, length int) {
	switch b[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
	default:
		return rune(b[1]), 2
	}
	unit := codeUnit(b)
	if !utf16.IsSurrogate(unit) {
		return unit, 6
	}
	if r = utf16.DecodeRune(unit, codeUnit(b[6:])); r != utf8.RuneError {
		return r, 12
	}
	return utf8.RuneError, 6
}
