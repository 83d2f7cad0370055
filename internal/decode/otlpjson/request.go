package otlpjson

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/decode/jsonscan"
)

// MaxDepth is how deep messages are nested that are written: somewhat deeper than what package otlp
// looks at. A list that is deeper is empty.
const MaxDepth = 72

// FromJSON appends the protobuf of a request. With an error it appends nothing.
func FromJSON(dst, body []byte) ([]byte, error) {
	r := reader{Scanner: jsonscan.Scanner{Body: body}, written: dst}
	if err := r.request(); err != nil {
		return dst, fmt.Errorf("read spans in JSON at byte %d: %w", r.At, err)
	}
	return r.written, nil
}

func (r *reader) request() error {
	if r.Next() != '{' {
		return errShape
	}
	if err := r.message(requestFields, 0); err != nil {
		return err
	}
	if r.Next(); r.At < len(r.Body) {
		return errFollow
	}
	return nil
}

// message writes the fields of a message, which begins here.
func (r *reader) message(of fields, depth int) error {
	return r.Each('}', func() error {
		name, err := r.Name()
		if err != nil {
			return err
		}
		if f := of.named(r.plain(name)); f != nil {
			return r.field(f, depth)
		}
		r.written, err = r.Skip(r.written)
		return err
	})
}

// field writes a field: a value, a list of them, or null.
func (r *reader) field(f *field, depth int) error {
	switch r.Next() {
	case 'n':
		return r.Word("null")
	case '[':
	default:
		return r.value(f, depth)
	}
	if f.form != asMessage && f.form != asText {
		return errShape // no other field is a list
	}
	return r.Each(']', func() error { return r.value(f, depth) })
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
	if r.Next() != '{' {
		return errShape
	}
	begin := r.open(f)
	if depth == MaxDepth {
		var err error
		r.written, err = r.Skip(r.written) // it is a list in lists, which says nothing to anybody
		return err
	}
	if err := r.message(*f.of, depth+1); err != nil {
		return err
	}
	r.close(begin)
	return nil
}
