package otlpjson

import "fmt"

// MaxDepth is how deep messages are nested that are written: somewhat deeper than what package otlp
// looks at. A list that is deeper is empty.
const MaxDepth = 72

// FromJSON appends the protobuf of a request. With an error it appends nothing.
func FromJSON(dst, body []byte) ([]byte, error) {
	r := reader{scanner: scanner{body: body}, written: dst}
	if err := r.request(); err != nil {
		return dst, fmt.Errorf("read spans in JSON at byte %d: %w", r.at, err)
	}
	return r.written, nil
}

func (r *reader) request() error {
	if r.next() != '{' {
		return errShape
	}
	if err := r.message(requestFields, 0); err != nil {
		return err
	}
	if r.next(); r.at < len(r.body) {
		return errFollow
	}
	return nil
}

// message writes the fields of a message, which begins here.
func (r *reader) message(of fields, depth int) error {
	return r.each('}', func() error {
		name, err := r.name()
		if err != nil {
			return err
		}
		if f := of.named(r.plain(name)); f != nil {
			return r.field(f, depth)
		}
		return r.skip()
	})
}

// field writes a field: a value, a list of them, or null.
func (r *reader) field(f *field, depth int) error {
	switch r.next() {
	case 'n':
		return r.word("null")
	case '[':
	default:
		return r.value(f, depth)
	}
	if f.form != asMessage && f.form != asText {
		return errShape // no other field is a list
	}
	return r.each(']', func() error { return r.value(f, depth) })
}

// value writes one value, and before it the field's tag.
func (r *reader) value(f *field, depth int) error {
	switch f.form {
	case asBool:
		return r.boolean(f)
	case asVarint64, asVarint32, asFixed64, asFixed32, asDouble:
		return r.numeric(f)
	case asMessage:
	default:
		return r.textual(f)
	}
	if r.next() != '{' {
		return errShape
	}
	begin := r.open(f)
	if depth == MaxDepth {
		return r.skip() // it is a list in lists, which says nothing to anybody
	}
	if err := r.message(*f.of, depth+1); err != nil {
		return err
	}
	r.close(begin)
	return nil
}
