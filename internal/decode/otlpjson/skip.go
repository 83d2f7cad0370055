package otlpjson

// skip steps over a value that nothing is made of, however deep it is nested. The bytes that end what
// is open stand behind what is written meanwhile: each takes the room of the byte that opened it.
func (r *reader) skip() error {
	isOver := len(r.written)
	for {
		c := r.next()
		isOpened := c == '{' || c == '['
		if isOpened {
			r.at++
			r.written = append(r.written, c+2) // in ASCII its end stands two behind it
		} else if err := r.scalar(c); err != nil {
			return err
		}
		for isFirst := isOpened; ; isFirst = false { // ends what ends here
			if len(r.written) == isOver {
				return nil
			}
			last := len(r.written) - 1
			shut := r.written[last]
			if c := r.next(); c == shut {
				r.at++
				r.written = r.written[:last]
				continue
			} else if !isFirst {
				if c != ',' {
					return errSyntax
				}
				r.at++
			}
			if shut == '}' {
				if _, err := r.name(); err != nil {
					return err
				}
			}
			break
		}
	}
}

// scalar steps over a value that is no object and no list, and begins with c.
func (s *scanner) scalar(c byte) (err error) {
	switch c {
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
