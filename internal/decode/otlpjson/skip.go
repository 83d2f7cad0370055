package otlpjson

// skip steps over a value that nothing is made of. The objects and lists around it are so many.
func (s *scanner) skip(depth int) (err error) {
	c := s.next()
	if (c == '{' || c == '[') && depth == MaxDepth {
		return errDepth
	}
	switch c {
	case '{':
		return s.each('}', func() error {
			if _, err := s.name(); err != nil {
				return err
			}
			return s.skip(depth + 1)
		})
	case '[':
		return s.each(']', func() error { return s.skip(depth + 1) })
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
