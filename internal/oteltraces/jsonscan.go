package oteltraces

import "errors"

var (
	errJSONSyntax = errors.New("this is no JSON, or its end is missing")
	errJSONDepth  = errors.New("it is nested too deep")
)

// maxJSONDepth is how deep objects and lists may be nested.
const maxJSONDepth = MaxDepth + 8

// jsonScanner steps through JSON in place, and takes what RFC 8259 does. Texts and numbers that
// it returns lie in the body.
type jsonScanner struct {
	body []byte
	at   int
}

// next is the byte that begins what follows, behind white space. At the end it is 0, which
// begins nothing.
func (s *jsonScanner) next() byte {
	for ; s.at < len(s.body); s.at++ {
		switch c := s.body[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// more steps to the next element of an object or a list, and says whether there is one. It
// does not look at the element, so what reads that finds a comma too many.
func (s *jsonScanner) more(shut byte, isFirst bool) (bool, error) {
	switch c := s.next(); {
	case c == shut:
		s.at++
		return false, nil
	case isFirst:
		return true, nil
	case c != ',':
		return false, errJSONSyntax
	}
	s.at++
	return true, nil
}

// name steps over a name and the colon behind it.
func (s *jsonScanner) name() (quoted, error) {
	name, err := s.text()
	if err != nil {
		return name, err
	}
	if s.next() != ':' {
		return name, errJSONSyntax
	}
	s.at++
	return name, nil
}

// number steps over a number.
func (s *jsonScanner) number() ([]byte, error) {
	begin := s.at
	s.has('-')
	if !s.has('0') && !s.hasDigits() ||
		s.has('.') && !s.hasDigits() ||
		(s.has('e') || s.has('E')) && !s.hasExponent() {
		return nil, errJSONSyntax
	}
	return s.body[begin:s.at], nil
}

// has steps over a byte, if it is there.
func (s *jsonScanner) has(c byte) bool {
	if s.at < len(s.body) && s.body[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *jsonScanner) hasDigits() bool {
	begin := s.at
	for s.at < len(s.body) && isDigit(s.body[s.at]) {
		s.at++
	}
	return s.at > begin
}

func (s *jsonScanner) hasExponent() bool {
	if !s.has('+') {
		s.has('-')
	}
	return s.hasDigits()
}

// word steps over true, false or null.
func (s *jsonScanner) word(word string) error {
	if end := s.at + len(word); end <= len(s.body) && string(s.body[s.at:end]) == word {
		s.at = end
		return nil
	}
	return errJSONSyntax
}

// skip steps over a value that nothing is made of.
func (s *jsonScanner) skip(depth int) (err error) {
	switch c := s.next(); c {
	case '{':
		return s.skipAll('}', depth+1)
	case '[':
		return s.skipAll(']', depth+1)
	case '"':
		_, err = s.text()
	case 't':
		err = s.word("true")
	case 'f':
		err = s.word("false")
	case 'n':
		err = s.word("null")
	default:
		_, err = s.number()
	}
	return err
}

// skipAll steps over an object or a list.
func (s *jsonScanner) skipAll(shut byte, depth int) error {
	if depth > maxJSONDepth {
		return errJSONDepth
	}
	s.at++
	for isFirst := true; ; isFirst = false {
		more, err := s.more(shut, isFirst)
		if err != nil || !more {
			return err
		}
		if shut == '}' {
			if _, err := s.name(); err != nil {
				return err
			}
		}
		if err := s.skip(depth); err != nil {
			return err
		}
	}
}
