// Package jsonscan reads JSON in place, for decoders that know which fields they need.
//
// It accepts exactly the grammar of RFC 8259. It does not allocate and does not recurse: strings and
// numbers are slices of the input, and SkipValue keeps its stack, one byte per nesting level, in a
// buffer of the caller. A Scanner is used by one goroutine at a time.
package jsonscan

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrSyntax is the error for input that is not valid JSON.
var ErrSyntax = errors.New("invalid or truncated JSON")

// Scanner reads the JSON in Body, from position Pos. Strings and numbers that it returns are slices of
// Body.
type Scanner struct {
	Body []byte
	Pos  int
}

// Peek skips white space and returns the next byte, without reading it. It returns 0 at the end.
func (s *Scanner) Peek() byte {
	for ; s.Pos < len(s.Body); s.Pos++ {
		switch c := s.Body[s.Pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// EachElement reads an array or object, and calls readElement to read each of its elements: a value, or
// in an object a name and a value. The next byte must be the opening bracket. closer is the closing
// bracket, ']' or '}'. EachElement stops at the first error and returns it.
func (s *Scanner) EachElement(closer byte, readElement func() error) error {
	s.Pos++
	isEmpty := s.Peek() == closer
	if isEmpty {
		s.Pos++
		return nil
	}
	for {
		// After a trailing comma, readElement finds the closing bracket and returns an error.
		if err := readElement(); err != nil {
			return err
		}
		switch s.Peek() {
		case closer:
			s.Pos++
			return nil
		case ',':
			s.Pos++
		default:
			return ErrSyntax
		}
	}
}

// ReadNumber reads a number and returns its text.
func (s *Scanner) ReadNumber() ([]byte, error) {
	begin := s.Pos
	s.accept("-")
	isNumber := s.accept("0") || s.acceptDigits()
	if isNumber && s.accept(".") {
		isNumber = s.acceptDigits()
	}
	if isNumber && s.accept("eE") {
		s.accept("+-")
		isNumber = s.acceptDigits()
	}
	if !isNumber {
		return nil, ErrSyntax
	}
	return s.Body[begin:s.Pos], nil
}

// accept reads the next byte if it is one of chars. It returns false if it has read nothing.
func (s *Scanner) accept(chars string) bool {
	if s.Pos == len(s.Body) || strings.IndexByte(chars, s.Body[s.Pos]) < 0 {
		return false
	}
	s.Pos++
	return true
}

// acceptDigits reads consecutive decimal digits. It returns false if the next byte is not a digit.
func (s *Scanner) acceptDigits() bool {
	begin := s.Pos
	for s.Pos < len(s.Body) && '0' <= s.Body[s.Pos] && s.Body[s.Pos] <= '9' {
		s.Pos++
	}
	return s.Pos > begin
}

// ReadLiteral reads the given literal: true, false or null.
func (s *Scanner) ReadLiteral(literal string) error {
	if !bytes.HasPrefix(s.Body[s.Pos:], []byte(literal)) {
		return ErrSyntax
	}
	s.Pos += len(literal)
	return nil
}

// ParseInteger parses a signed or unsigned 64-bit integer. It returns the two's complement of a negative
// integer. It also accepts an integer with a fraction or an exponent, such as 1.0 or 1e3, if its absolute
// value is less than 1<<63. ok is false for any other text.
func ParseInteger(text []byte) (n uint64, ok bool) {
	if signed, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return uint64(signed), true
	}
	if unsigned, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		return unsigned, true
	}
	float, err := strconv.ParseFloat(string(text), 64)
	isInteger := float == math.Trunc(float)
	isInRange := math.Abs(float) < 1<<63
	if err != nil || !isInteger || !isInRange {
		return 0, false
	}
	return uint64(int64(float)), true
}

// SkipValue skips a value of any nesting depth. It stores temporary data in the free capacity of buf,
// after its content. It returns buf with its content unchanged, but in new memory if the capacity was
// too small.
func (s *Scanner) SkipValue(buf []byte) ([]byte, error) {
	bufLen := len(buf)
	closers := buf // after bufLen, the closing brackets of the open arrays and objects
	for {
		c := s.Peek()
		isOpening := c == '{' || c == '['
		if isOpening {
			s.Pos++
			closers = append(closers, c+2) // in ASCII, '}' is '{' + 2, and ']' is '[' + 2
		} else if err := s.skipScalar(c); err != nil {
			return closers[:bufLen], err
		}
		skipped := s.skipClosers(closers[bufLen:])
		closers = closers[:len(closers)-skipped]
		isComplete := len(closers) == bufLen
		if isComplete {
			return closers, nil
		}
		isFirst := isOpening && skipped == 0
		if err := s.skipSeparator(closers[len(closers)-1], isFirst); err != nil {
			return closers[:bufLen], err
		}
	}
}

// skipClosers skips consecutive closing brackets. expected contains the closing bracket of each open array
// or object, the innermost last. skipClosers stops at any other byte, and returns the number of skipped
// brackets.
func (s *Scanner) skipClosers(expected []byte) (skipped int) {
	for len(expected) > 0 && s.Peek() == expected[len(expected)-1] {
		s.Pos++
		expected = expected[:len(expected)-1]
		skipped++
	}
	return skipped
}

// skipSeparator skips the text before the next value of an array or object: the comma, and in an object
// the name of the value. closer is the closing bracket, ']' or '}'. If isFirst is true, the value is the
// first one, which has no comma.
func (s *Scanner) skipSeparator(closer byte, isFirst bool) error {
	if !isFirst {
		if s.Peek() != ',' {
			return ErrSyntax
		}
		s.Pos++
	}
	if closer == '}' {
		_, err := s.ReadName()
		return err
	}
	return nil
}

// skipScalar skips a string, number or literal that begins with c.
func (s *Scanner) skipScalar(c byte) (err error) {
	switch c {
	case '"':
		_, err = s.ReadString()
	case 't':
		err = s.ReadLiteral("true")
	case 'f':
		err = s.ReadLiteral("false")
	case 'n':
		err = s.ReadLiteral("null")
	default:
		_, err = s.ReadNumber()
	}
	return err
}

// String is a JSON string.
type String struct {
	Raw     []byte // bytes between the quotes
	Start   int    // position of Raw in the input
	IsPlain bool   // Raw is ASCII without escapes, and therefore the value
}

// isPlainByte contains the bytes that represent themselves in a string.
var isPlainByte = func() (is [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// ReadString reads a string with its quotes. It checks escape sequences, but does not replace them.
func (s *Scanner) ReadString() (String, error) {
	if s.Peek() != '"' {
		return String{}, ErrSyntax
	}
	start := s.Pos + 1
	b := s.Body[start:]
	isPlain := true
	i := 0
	for i < len(b) {
		switch c := b[i]; {
		case isPlainByte[c]:
			i++
		case c == '"':
			s.Pos = start + i + 1
			return String{b[:i], start, isPlain}, nil
		case c == '\\':
			length := escapeLen(b[i:])
			if length == 0 {
				return String{}, ErrSyntax
			}
			i += length
			isPlain = false
		case c < ' ':
			return String{}, ErrSyntax
		default:
			i++
			isPlain = false
		}
	}
	return String{}, ErrSyntax
}

// ReadName reads the name of an object member, and the colon after it.
func (s *Scanner) ReadName() (String, error) {
	name, err := s.ReadString()
	if err == nil && s.Peek() != ':' {
		err = ErrSyntax
	}
	s.Pos++
	return name, err
}

// escapeLen returns the length of the escape sequence at the start of b, or 0 if it is invalid.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if parseUnicodeEscape(b) >= 0 {
			return 6
		}
	}
	return 0
}

// parseUnicodeEscape returns the UTF-16 code unit for the escape sequence \uXXXX at the start of b. It
// returns -1 if b does not start with such a sequence.
func parseUnicodeEscape(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// AppendTo appends the value of a JSON string to dst, with escape sequences decoded. It replaces each
// unpaired surrogate and each byte that is not valid UTF-8 by U+FFFD.
func (t String) AppendTo(dst []byte) []byte {
	if t.IsPlain {
		return append(dst, t.Raw...)
	}
	unread := t.Raw
	for len(unread) > 0 {
		var char rune
		var length int
		if unread[0] == '\\' {
			char, length = decodeEscape(unread)
		} else {
			char, length = utf8.DecodeRune(unread)
		}
		dst = utf8.AppendRune(dst, char)
		unread = unread[length:]
	}
	return dst
}

// decodeEscape decodes the escape sequence at the start of b, which must be valid. It returns the
// character and the length of the sequence.
func decodeEscape(b []byte) (r rune, length int) {
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
		return decodeUnicodeEscape(b)
	}
	return rune(b[1]), 2 // a quote, slash or backslash
}

// decodeUnicodeEscape decodes the sequence \uXXXX at the start of b, or two such sequences that form a
// surrogate pair. It returns the character and the length. An unpaired surrogate becomes U+FFFD.
func decodeUnicodeEscape(b []byte) (r rune, length int) {
	const escapeLength = 6
	unit := parseUnicodeEscape(b)
	if !utf16.IsSurrogate(unit) {
		return unit, escapeLength
	}
	nextUnit := parseUnicodeEscape(b[escapeLength:])
	r = utf16.DecodeRune(unit, nextUnit)
	isPair := r != utf8.RuneError
	if isPair {
		return r, 2 * escapeLength
	}
	return utf8.RuneError, escapeLength
}
