package oteltraces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// FromJSON appends the protobuf of a request that is written as OTLP/JSON has it: names in
// lowerCamelCase, ids in hexadecimal, integers of 64 bits as text or as numbers, enumerations
// as numbers. A name that it does not know is skipped, as the specification wants it. What it
// appends is no longer than the body. It allocates: SDKs that send JSON run in browsers.
func FromJSON(dst, body []byte) ([]byte, error) {
	r := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(body))}
	r.UseNumber()
	written, err := r.request(dst)
	if err != nil {
		return dst, fmt.Errorf("read spans in JSON at byte %d: %w", r.InputOffset(), err)
	}
	return written, nil
}

// jsonReader reads a request, token by token.
type jsonReader struct{ *json.Decoder }

// maxJSONDepth is how deep objects and lists may be nested.
const maxJSONDepth = MaxDepth + 8

var (
	errJSONDepth = errors.New("it is nested too deep")
	errJSONShape = errors.New("a value is not what its name says: see the JSON encoding of OTLP")
)

func (r *jsonReader) request(dst []byte) ([]byte, error) {
	t, err := r.Token()
	if err != nil {
		return dst, err
	}
	if t != json.Delim('{') {
		return dst, errJSONShape
	}
	if dst, err = r.message(dst, jsonRequest, 0); err != nil {
		return dst, err
	}
	if _, err = r.Token(); !errors.Is(err, io.EOF) {
		return dst, errors.New("something follows the request")
	}
	return dst, nil
}

// message writes the fields of a message behind its opening brace.
func (r *jsonReader) message(dst []byte, fields jsonFields, depth int) ([]byte, error) {
	for {
		name, err := r.Token()
		if err != nil {
			return dst, err
		}
		text, isName := name.(string)
		if !isName {
			return dst, nil // the closing brace
		}
		value, err := r.Token()
		if err != nil {
			return dst, err
		}
		if f, known := fields[text]; known {
			dst, err = r.field(dst, f, value, depth)
		} else {
			err = r.skip(value, depth)
		}
		if err != nil {
			return dst, err
		}
	}
}

// field writes a field that begins with a token: a value, a list of them, or null.
func (r *jsonReader) field(dst []byte, f jsonField, value json.Token, depth int) ([]byte, error) {
	if value == nil {
		return dst, nil
	}
	if value != json.Delim('[') {
		return r.value(dst, f, value, depth)
	}
	if f.kind != jsonMessage && f.kind != jsonText {
		return dst, errJSONShape // no other field is a list
	}
	for {
		element, err := r.Token()
		if err != nil || element == json.Delim(']') {
			return dst, err
		}
		if dst, err = r.value(dst, f, element, depth); err != nil {
			return dst, err
		}
	}
}

// value writes one value, and before it the field's tag.
func (r *jsonReader) value(dst []byte, f jsonField, value json.Token, depth int) ([]byte, error) {
	if f.kind != jsonMessage {
		return appendJSON(dst, f, value)
	}
	if value != json.Delim('{') {
		return dst, errJSONShape
	}
	if depth == maxJSONDepth {
		return dst, errJSONDepth
	}
	dst = protowire.AppendTag(dst, f.number, protowire.BytesType)
	begin := len(dst)
	dst, err := r.message(dst, *f.of, depth+1)
	if err != nil {
		return dst, err
	}
	var length [10]byte
	return slices.Insert(dst, begin, protowire.AppendVarint(length[:0], uint64(len(dst)-begin))...), nil
}

// skip steps over a value that begins with a token.
func (r *jsonReader) skip(value json.Token, depth int) error {
	for open := 0; ; {
		switch value {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
		if open == 0 {
			return nil
		}
		if depth+open > maxJSONDepth {
			return errJSONDepth
		}
		var err error
		if value, err = r.Token(); err != nil {
			return err
		}
	}
}
