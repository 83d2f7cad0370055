package jsonscan

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
