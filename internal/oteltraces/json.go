package oteltraces

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// FromJSON appends the protobuf of a request that is written as OTLP/JSON has it: names in
// lowerCamelCase, ids in hexadecimal, integers of 64 bits as text or as numbers, enumerations
// as numbers. A name that it does not know is skipped, as the specification wants it. Where the
// body is UTF-8, what it appends is no longer than ProtobufBytes says, and nothing is allocated
// where there is room for it.
func FromJSON(dst, body []byte) ([]byte, error) {
	r := jsonReader{jsonScanner: jsonScanner{body: body}, written: dst}
	if err := r.request(); err != nil {
		return dst, fmt.Errorf("read spans in JSON at byte %d: %w", r.at, err)
	}
	return r.written, nil
}

// ProtobufBytes is how long the protobuf of so many bytes of JSON may be. It is shorter, since
// names become numbers, but for lists of texts: of an element two quotes and a comma become a
// number and a length, and the length of 16 KiB or more has at least three bytes.
func ProtobufBytes(json int) int { return json + json>>14 }

// jsonReader reads a request, and writes each field as soon as it is read.
type jsonReader struct {
	jsonScanner
	written []byte
}

var (
	errJSONShape  = errors.New("a value is not what its name says: see the JSON encoding of OTLP")
	errJSONFollow = errors.New("something follows the request")
)

func (r *jsonReader) request() error {
	if r.next() != '{' {
		return errJSONShape
	}
	if err := r.message(jsonRequest, 0); err != nil {
		return err
	}
	if r.next(); r.at < len(r.body) {
		return errJSONFollow
	}
	return nil
}

// message writes the fields of a message, which begins here.
func (r *jsonReader) message(fields jsonFields, depth int) error {
	r.at++
	for isFirst := true; ; isFirst = false {
		more, err := r.more('}', isFirst)
		if err != nil || !more {
			return err
		}
		name, err := r.name()
		if err != nil {
			return err
		}
		if f := fields.named(r.plain(name)); f != nil {
			err = r.field(f, depth)
		} else {
			err = r.skip(depth)
		}
		if err != nil {
			return err
		}
	}
}

// field writes a field: a value, a list of them, or null.
func (r *jsonReader) field(f *jsonField, depth int) error {
	switch r.next() {
	case 'n':
		return r.word("null")
	case '[':
	default:
		return r.value(f, depth)
	}
	if f.kind != jsonMessage && f.kind != jsonText {
		return errJSONShape // no other field is a list
	}
	r.at++
	for isFirst := true; ; isFirst = false {
		more, err := r.more(']', isFirst)
		if err != nil || !more {
			return err
		}
		if err = r.value(f, depth); err != nil {
			return err
		}
	}
}

// value writes one value, and before it the field's tag.
func (r *jsonReader) value(f *jsonField, depth int) error {
	switch f.kind {
	case jsonBool:
		return r.boolean(f)
	case jsonVarint, jsonFixed64, jsonFixed32, jsonDouble:
		return r.numeric(f)
	case jsonMessage:
	default:
		return r.textual(f)
	}
	if r.next() != '{' {
		return errJSONShape
	}
	if depth == maxJSONDepth {
		return errJSONDepth
	}
	begin := r.open(f)
	if err := r.message(*f.of, depth+1); err != nil {
		return err
	}
	r.close(begin)
	return nil
}

// open begins a field whose length shows when all of it is written, close writes the length.
// There is room for one byte of it. For more, what the field holds moves, once for each message
// around it, of which there are maxJSONDepth at most.
func (r *jsonReader) open(f *jsonField) (begin int) {
	r.written = append(protowire.AppendTag(r.written, f.number, protowire.BytesType), 0)
	return len(r.written)
}

func (r *jsonReader) close(begin int) {
	var room [10]byte
	length := protowire.AppendVarint(room[:0], uint64(len(r.written)-begin))
	r.written[begin-1] = length[0]
	if rest := length[1:]; len(rest) > 0 {
		r.written = slices.Insert(r.written, begin, rest...)
	}
}
