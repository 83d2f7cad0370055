package jsonscan

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Quoted is a text of JSON between its quotes. One that is plain stands there as it is.
type Quoted struct {
	Raw     []byte
	At      int // where it begins
	IsPlain bool
}

// isPlainByte has the bytes that stand for themselves in a text, whatever is beside them.
var isPlainByte = func() (is [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// Text steps over a text.
func (s *Scanner) Text() (Quoted, error) {
	if s.Next() != '"' {
		return Quoted{}, ErrSyntax
	}
	at, b, isPlain := s.At+1, s.Body[s.At+1:], true
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case isPlainByte[c]:
		case c == '"':
			s.At += i + 2
			return Quoted{b[:i], at, isPlain}, nil
		case c == '\\':
			length := escapeLen(b[i:])
			if length == 0 {
				return Quoted{}, ErrSyntax
			}
			i += length - 1
			isPlain = false
		case c < ' ':
			return Quoted{}, ErrSyntax
		default:
			isPlain = false
		}
	}
	return Quoted{}, ErrSyntax
}

// Name steps over a name and the colon behind it.
func (s *Scanner) Name() (Quoted, error) {
	name, err := s.Text()
	if err == nil && s.Next() != ':' {
		err = ErrSyntax
	}
	s.At++
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

// AppendTo appends what the text says. A surrogate without its other half, and a byte that is
// not of UTF-8, become U+FFFD.
func (t Quoted) AppendTo(dst []byte) []byte {
	if t.IsPlain {
		return append(dst, t.Raw...)
	}
	for b := t.Raw; len(b) > 0; {
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
