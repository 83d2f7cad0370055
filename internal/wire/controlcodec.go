package wire

import (
	"iter"
	"math"
	"reflect"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// A control message is a struct. The struct tag "wire" contains the name of a field in the message, and the option
// "omitzero" omits the field if it is zero. Fields are encoded in the order of the struct and decoded in any order.
// Fields of an embedded struct are fields of the message. Fields with the name "-" are not.

// fieldName returns the name of a struct field in its message, and whether the field is omitted if it is
// zero.
func fieldName(field reflect.StructField) (name string, omitZero bool) {
	return strings.CutSuffix(field.Tag.Get("wire"), ",omitzero")
}

// appendControl appends a frame with a control message, which is a pointer to a struct.
func appendControl(dst []byte, t Type, message any) []byte {
	start := len(dst)
	dst = appendFields(beginFrame(dst, t), reflect.ValueOf(message).Elem())
	endFrame(dst, start)
	return dst
}

// controlFields iterates over the fields of a control message and their values.
func controlFields(message reflect.Value) iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		for i := range message.NumField() {
			field, value := message.Type().Field(i), message.Field(i)
			if field.Tag.Get("wire") == "-" {
				continue
			}
			if !field.Anonymous {
				if !yield(field, value) {
					return
				}
				continue
			}
			for field, value := range controlFields(value) {
				if !yield(field, value) {
					return
				}
			}
		}
	}
}

// appendFields appends a map of the fields of a message, without those that are omitted.
func appendFields(dst []byte, message reflect.Value) []byte {
	var names []string
	var values []reflect.Value
	for field, value := range controlFields(message) {
		name, omitZero := fieldName(field)
		if omitZero && value.IsZero() {
			continue
		}
		names = append(names, name)
		values = append(values, value)
	}
	dst = appendMap(dst, len(names))
	for i, name := range names {
		dst = appendValue(appendStr(dst, name), values[i])
	}
	return dst
}

func appendValue(dst []byte, value reflect.Value) []byte {
	switch v := value.Addr().Interface().(type) {
	case *string:
		return appendStr(dst, *v)
	case *uint64:
		return appendUint(dst, *v)
	case *int:
		return appendUint(dst, uint64(*v))
	case *bool:
		return appendBool(dst, *v)
	case *[]string:
		return appendTexts(dst, *v)
	case *[]uint64:
		return appendNumbers(dst, *v)
	}
	return appendFields(dst, value)
}

// appendTexts appends a list of strings, truncated to the limits that the reader enforces.
func appendTexts(dst []byte, list []string) []byte {
	count, size := 0, 0
	for count < min(len(list), maxListElements) && size+len(list[count]) <= maxListBytes {
		size += len(list[count])
		count++
	}
	dst = appendArray(dst, count)
	for _, s := range list[:count] {
		dst = appendStr(dst, s)
	}
	return dst
}

func appendNumbers(dst []byte, list []uint64) []byte {
	list = list[:min(len(list), maxListElements)]
	dst = appendArray(dst, len(list))
	for _, v := range list {
		dst = appendUint(dst, v)
	}
	return dst
}

// appendMap appends the header of a map of at most 65,535 pairs.
func appendMap(dst []byte, pairs int) []byte {
	if pairs < 16 {
		return append(dst, msgpack.FixMap|byte(pairs))
	}
	return append(dst, msgpack.Map16, byte(pairs>>8), byte(pairs))
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, msgpack.True)
	}
	return append(dst, msgpack.False)
}

// Limits of a list in a control message. The writer truncates longer lists, and the reader rejects them. The lists are
// hints for a client, so a truncated one makes it send more spans than necessary, but loses none.
const (
	maxListElements = 1024
	maxListBytes    = 64 << 10
)

// maxDepth is the maximum nesting of maps and arrays in a control message. The messages of this version
// have at most three levels; later versions can use more.
const maxDepth = 8

// controlReader decodes the fields of a control message. Nil decodes as the zero value of every type. After the first
// error, it reads nothing more.
//
// It uses package msgpack rather than a library, because clients link it as a part of package client, which has no
// dependencies.
type controlReader struct {
	msgpack.Reader
	operation string // for error messages
	body      []byte
	err       error
}

// readControl decodes a body that is a map into a message. If it returns an error, the message is zero.
func readControl[M any](t Type, body []byte) (m M, err error) {
	err = readMap(t, body, func(r *controlReader, name string) { r.field(reflect.ValueOf(&m).Elem(), name) })
	if err != nil {
		m = *new(M)
	}
	return m, err
}

// readMap decodes a body that is a map. It calls readValue for each entry, with a reader at the entry's value.
func readMap(t Type, body []byte, readValue func(r *controlReader, name string)) error {
	operation := "decode " + t.String()
	if err := validate(operation, body); err != nil {
		return err
	}
	r := &controlReader{Reader: msgpack.NewReader(body), operation: operation, body: body}
	if r.Lead() == msgpack.Nil { // only the value of a field can be nil
		r.Fail()
		r.expect("a map")
	}
	r.entries(readValue)
	return r.err
}

// validate checks that body is exactly one value, nested at most maxDepth levels deep. This includes fields of later
// versions, which are not decoded.
func validate(operation string, body []byte) error {
	r := msgpack.NewReader(body)
	if r.SkipWithin(maxDepth); r.Failed() {
		return malformed(operation, len(body)-r.At(), "expected a whole value, nested no deeper than %d, "+
			"found %s", maxDepth, describe(body, r.At()))
	}
	if r.Left() != 0 {
		return malformed(operation, r.Left(), "%d bytes follow its one value", r.Left())
	}
	return nil
}

// entries reads a map with string keys and calls readValue for each entry. If a key occurs twice, its second value
// overwrites the first.
func (r *controlReader) entries(readValue func(r *controlReader, name string)) {
	for count := value(r, r.Map, "a map"); count > 0 && r.err == nil; count-- {
		name := r.Str()
		if r.expect("a string as a field's name"); r.err == nil {
			readValue(r, string(name.Bytes(r.body)))
		}
	}
}

// field reads a value into the field of message with this name. It skips fields of later versions.
func (r *controlReader) field(message reflect.Value, name string) {
	for field, value := range controlFields(message) {
		if known, _ := fieldName(field); known == name {
			r.readInto(value)
			return
		}
	}
	r.Skip()
}

// readInto reads a value into a field, according to the type of the field.
func (r *controlReader) readInto(field reflect.Value) {
	switch p := field.Addr().Interface().(type) {
	case *string:
		*p = r.text()
	case *uint64:
		*p = r.number(math.MaxUint64)
	case *int: // a size in memory
		*p = int(r.number(math.MaxInt32))
	case *bool:
		*p = value(r, r.Bool, "a boolean")
	case *[]string:
		*p = r.texts()
	case *[]uint64:
		*p = nil
		r.list(func() { *p = append(*p, r.number(math.MaxUint64)) })
	default:
		field.SetZero()
		r.entries(func(r *controlReader, name string) { r.field(field, name) })
	}
}

// value returns the result of read, or the zero value if the next value is nil. If read fails, value returns
// the zero value and sets r.err to an error that states the expected kind of value.
func value[V any](r *controlReader, read func() V, expected string) (v V) {
	if r.IsNil() {
		return v
	}
	v = read()
	r.expect(expected)
	return v
}

func (r *controlReader) text() string { return string(value(r, r.Str, "a string").Bytes(r.body)) }

func (r *controlReader) number(limit uint64) uint64 {
	readUint := func() uint64 { return r.Uint(limit) }
	return value(r, readUint, "an integer that is not negative, and a size below 2^31")
}

func (r *controlReader) texts() []string {
	var list []string
	size := 0
	r.list(func() {
		s := r.text()
		if size += len(s); size > maxListBytes {
			r.fault("expected a list of at most %d bytes", maxListBytes)
		}
		list = append(list, s)
	})
	return list
}

// list reads the header of an array and calls readElement for each element.
func (r *controlReader) list(readElement func()) {
	count := value(r, r.Array, "an array")
	if count > maxListElements {
		r.fault("expected a list of at most %d elements, found %d", maxListElements, count)
	}
	for ; count > 0 && r.err == nil; count-- {
		readElement()
	}
}

// expect sets the error if the reader has failed. expected describes the value that it should have found.
func (r *controlReader) expect(expected string) {
	if r.Failed() {
		r.fault("expected %s, found %s", expected, describe(r.body, r.At()))
	}
}

// fault sets the error at the current position, unless there is one already, and makes the reader fail.
func (r *controlReader) fault(format string, args ...any) {
	if r.err == nil {
		r.err = malformed(r.operation, len(r.body)-r.At(), format, args...)
		r.Fail()
	}
}
