package otlpjson

import (
	"bytes"
	"errors"
	"strings"
)

var errSyntax = errors.New("this is no JSON, or its end is missing")

// scanner steps through JSON in place, and takes what RFC 8259 does. Texts and numbers that it
// returns lie in the body.
type scanner struct {
	body []byte
	at   int
}

// next is the byte that begins what follows, behind white space. At the end it is 0, which
// begins nothing.
func (s *scanner) next() byte {
	for ; s.at < len(s.body); s.at++ {
		switch c := s.body[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// each visits the elements of an object or a list, which begins here. It does not look at them,
// so what reads an element finds a comma too many.
func (s *scanner) each(shut byte, element func() error) error {
	s.at++
	for isFirst := true; ; isFirst = false {
		c := s.next()
		switch {
		case c == shut:
			s.at++
			return nil
		case isFirst:
		case c != ',':
			return errSyntax
		default:
			s.at++
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// number steps over a number.
func (s *scanner) number() ([]byte, error) {
	begin := s.at
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
		return nil, errSyntax
	}
	return s.body[begin:s.at], nil
}

// has steps over a byte, if it is one of some.
func (s *scanner) has(some string) bool {
	if s.at < len(s.body) && strings.IndexByte(some, s.body[s.at]) >= 0 {
		s.at++
		return true
	}
	return false
}

func (s *scanner) hasDigits() bool {
	begin := s.at
	for s.at < len(s.body) && isDigit(s.body[s.at]) {
		s.at++
	}
	return s.at > begin
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// word steps over true, false or null.
func (s *scanner) word(word string) error {
	if !bytes.HasPrefix(s.body[s.at:], []byte(word)) {
		return errSyntax
	}
	s.at += len(word)
	return nil
}
