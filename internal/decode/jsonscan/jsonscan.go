// Package jsonscan steps through JSON in place, for decoders that know what they look for. It
// takes what RFC 8259 does and nothing else, and knows nothing of what the JSON says.
//
// # Bounds
//
// Nothing is allocated. What is stepped over may be nested as deep as it is: Skip takes a byte for
// each end that is open, of memory that its caller has.
//
// # Threading
//
// One goroutine at a time uses a Scanner.
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

// ErrSyntax is why a body is not read.
var ErrSyntax = errors.New("this is no JSON, or its end is missing")

// Scanner steps through JSON in place, and takes what RFC 8259 does. Texts and numbers that it
// returns lie in the body.
type Scanner struct {
	Body []byte
	At   int
}

// Next is the byte that begins what follows, behind white space. At the end it is 0, which
// begins nothing.
func (s *Scanner) Next() byte {
	for ; s.At < len(s.Body); s.At++ {
		switch c := s.Body[s.At]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// Each visits the elements of an object or a list, which begins here. It does not look at them,
// so what reads an element finds a comma too many.
func (s *Scanner) Each(shut byte, element func() error) error {
	s.At++
	for isFirst := true; ; isFirst = false {
		c := s.Next()
		switch {
		case c == shut:
			s.At++
			return nil
		case isFirst:
		case c != ',':
			return ErrSyntax
		default:
			s.At++
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// Number steps over a number.
func (s *Scanner) Number() ([]byte, error) {
	begin := s.At
	s.has("-")
	isNumber := s.has("0") || s.hasDigits()
	if isNumber && s.has(".") {
		isNumber = s.hasDigits()
	}
	if isNumber && s.has("eE") {
		s.has("+-")
		isNumber = s.hasDigits()
	}
	if !isNumber {
		return nil, ErrSyntax
	}
	return s.Body[begin:s.At], nil
}

// has steps over a byte, if it is one of some.
func (s *Scanner) has(some string) bool {
	if s.At < len(s.Body) && strings.IndexByte(some, s.Body[s.At]) >= 0 {
		s.At++
		return true
	}
	return false
}

func (s *Scanner) hasDigits() bool {
	begin := s.At
	for s.At < len(s.Body) && isDigit(s.Body[s.At]) {
		s.At++
	}
	return s.At > begin
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Word steps over true, false or null.
func (s *Scanner) Word(word string) error {
	if !bytes.HasPrefix(s.Body[s.At:], []byte(word)) {
		return ErrSyntax
	}
	s.At += len(word)
	return nil
}

// Integer reads an integer of 64 bits, as its two's complement where it is negative. One may be
// written with an exponent, or as 1.0.
func Integer(said []byte) (uint64, bool) {
	if n, err := strconv.ParseInt(string(said), 10, 64); err == nil {
		return uint64(n), true
	}
	if n, err := strconv.ParseUint(string(said), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(said), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return uint64(int64(f)), true
}

// Skip steps over a value that nothing is made of, however deep it is nested. The bytes that end what
// is open stand behind what is written so far, which it returns: each takes the room of the byte that
// opened it.
func (s *Scanner) Skip(written []byte) ([]byte, error) {
	isOver := len(written)
	for {
		c := s.Next()
		isOpened := c == '{' || c == '['
		if isOpened {
			s.At++
			written = append(written, c+2) // in ASCII its end stands two behind it
		} else if err := s.scalar(c); err != nil {
			return written[:isOver], err
		}
		for isFirst := isOpened; ; isFirst = false { // ends what ends here
			if len(written) == isOver {
				return written, nil
			}
			last := len(written) - 1
			shut := written[last]
			if c := s.Next(); c == shut {
				s.At++
				written = written[:last]
				continue
			} else if !isFirst {
				if c != ',' {
					return written[:isOver], ErrSyntax
				}
				s.At++
			}
			if shut == '}' {
				if _, err := s.Name(); err != nil {
					return written[:isOver], err
				}
			}
			break
		}
	}
}

// scalar steps over a value that is no object and no list, and begins with c.
func (s *Scanner) scalar(c byte) (err error) {
	switch c {
	case '"':
		_, err = s.Text()
	case 't':
		err = s.Word("true")
	case 'f':
		err = s.Word("false")
	case 'n':
		err = s.Word("null")
	default:
		_, err = s.Number()
	}
	return err
}

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
