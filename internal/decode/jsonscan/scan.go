package jsonscan

import (
	"bytes"
	"errors"
	"strings"
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
