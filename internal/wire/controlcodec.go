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

// fieldName parses the struct tag of a field. It returns the name of the field in a message, and whether a field with
// the zero value is omitted.
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

// controlFields iterates over the encoded fields of a control message and their values.
func controlFields(message reflect.Value) iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		visitFields(message, yield)
	}
}

// visitFields calls visit for each field of a struct that is encoded in messages, including the fields of embedded
// structs. If visit returns false, visitFields stops and returns false.
func visitFields(message reflect.Value, visit func(reflect.StructField, reflect.Value) bool) bool {
	for i := range message.NumField() {
		field := message.Type().Field(i)
		value := message.Field(i)
		shouldContinue := true
		switch {
		case field.Tag.Get("wire") == "-": // not encoded
		case field.Anonymous:
			shouldContinue = visitFields(value, visit)
		default:
			shouldContinue = visit(field, value)
		}
		if !shouldContinue {
			return false
		}
	}
	return true
}

// appendFields appends a struct as a map from the names of its fields to their values. It leaves out a field with
// the option "omitzero" in its tag if the value is zero.
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
		dst = appendStr(dst, name)
		dst = appendValue(dst, values[i])
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
		return appendStrings(dst, *v)
	case *[]uint64:
		return appendUints(dst, *v)
	}
	return appendFields(dst, value)
}

// appendStrings appends a list of strings. It leaves out strings at the end if the list has more than
// maxListElements strings, or more than maxListBytes bytes in total, because decoders reject longer lists.
func appendStrings(dst []byte, list []string) []byte {
	list = list[:min(len(list), maxListElements)]
	totalBytes := 0
	for i, s := range list {
		totalBytes += len(s)
		if totalBytes > maxListBytes {
			list = list[:i]
			break
		}
	}
	dst = appendArray(dst, len(list))
	for _, s := range list {
		dst = appendStr(dst, s)
	}
	return dst
}

// appendUints appends the first maxListElements integers of a list, because the reader rejects longer lists.
func appendUints(dst []byte, list []uint64) []byte {
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
	operation string // operation, for error messages
	body      []byte
	err       error
}

// readControl decodes the body of a control message into a struct of type M. If it returns an error, the struct is zero.
func readControl[M any](t Type, body []byte) (M, error) {
	var zero, message M
	fields := reflect.ValueOf(&message).Elem()
	err := readMap(t, body, func(r *controlReader, name string) { r.readField(fields, name) })
	if err != nil {
		return zero, err
	}
	return message, nil
}

// readMap decodes the body of a control message, which must be a map. For each entry it calls readValue with the
// entry's name; readValue must read the entry's value from r. readMap returns an error if the body is malformed.
func readMap(t Type, body []byte, readValue func(r *controlReader, name string)) error {
	operation := "decode " + t.String()
	if err := validate(operation, body); err != nil {
		return err
	}
	r := &controlReader{Reader: msgpack.NewReader(body), operation: operation, body: body}
	isNil := r.Peek() == msgpack.Nil
	if isNil { // readEntries would accept it as an empty map, which is valid only for a field
		r.reject("expected a map, found %s", describeByte(body, 0))
		return r.err
	}
	r.readEntries(readValue)
	return r.err
}

// validate returns an error unless body is exactly one msgpack value, nested at most maxDepth levels deep. It reads
// the whole value, including fields that this version of the protocol does not know.
func validate(operation string, body []byte) error {
	r := msgpack.NewReader(body)
	r.SkipWithin(maxDepth)
	unreadBytes := len(body) - r.Pos() // Unread would return 0 after a failure
	if r.Failed() {
		return malformed(operation, unreadBytes, "expected a whole value, nested no deeper than %d, "+
			"found %s", maxDepth, describeByte(body, r.Pos()))
	}
	if unreadBytes != 0 {
		return malformed(operation, unreadBytes, "%d bytes follow its one value", unreadBytes)
	}
	return nil
}

// readEntries reads a map and calls readValue for each entry with the name of the entry. readValue must read the value
// of the entry from r. readEntries stops at the first error.
func (r *controlReader) readEntries(readValue func(r *controlReader, name string)) {
	entries := readOrZero(r, r.Map, "a map") // 0 after an error
	for range entries {
		name := string(r.Str().Bytes(r.body))
		r.checkRead("a string as a field's name")
		if r.err != nil {
			return
		}
		readValue(r, name)
	}
}

// readField reads the next value into the field of message with the given name. If message has no such field, it
// skips the value, because a later version of the protocol can add fields.
func (r *controlReader) readField(message reflect.Value, name string) {
	for field, value := range controlFields(message) {
		knownName, _ := fieldName(field)
		if knownName == name {
			r.readInto(value)
			return
		}
	}
	r.Skip()
}

// readInto decodes the next value into field. The type of field determines which values are valid.
func (r *controlReader) readInto(field reflect.Value) {
	switch target := field.Addr().Interface().(type) {
	case *string:
		*target = r.readString()
	case *uint64:
		*target = r.readUint(math.MaxUint64)
	case *int: // a size in memory
		*target = int(r.readUint(math.MaxInt32))
	case *bool:
		*target = readOrZero(r, r.Bool, "a boolean")
	case *[]string:
		*target = r.readStrings()
	case *[]uint64:
		*target = r.readUints()
	default: // a nested message
		field.SetZero()
		r.readEntries(func(r *controlReader, name string) { r.readField(field, name) })
	}
}

// readOrZero calls read to decode the next value, and returns the result. If the next value is nil, it skips that
// and returns the zero value of V. If read fails, it sets r.err to an error that contains expected, such as "an array".
func readOrZero[V any](r *controlReader, read func() V, expected string) V {
	if r.SkipNil() {
		var zero V
		return zero
	}
	v := read()
	r.checkRead(expected)
	return v
}

func (r *controlReader) readString() string {
	return string(readOrZero(r, r.Str, "a string").Bytes(r.body))
}

func (r *controlReader) readUint(limit uint64) uint64 {
	read := func() uint64 { return r.Uint(limit) }
	return readOrZero(r, read, "an integer that is not negative, and a size below 2^31")
}

// readStrings reads a list of strings. It rejects the message if their total length is more than maxListBytes.
func (r *controlReader) readStrings() []string {
	var list []string
	totalBytes := 0
	r.readList(func() {
		s := r.readString()
		totalBytes += len(s)
		if totalBytes > maxListBytes {
			r.reject("expected a list of at most %d bytes", maxListBytes)
		}
		list = append(list, s)
	})
	return list
}

func (r *controlReader) readUints() []uint64 {
	var list []uint64
	r.readList(func() { list = append(list, r.readUint(math.MaxUint64)) })
	return list
}

// readList reads a list and calls readElement for each element, which must read the element from r. If the list has
// more than maxListElements elements, readList sets r.err. It stops at the first error.
func (r *controlReader) readList(readElement func()) {
	count := readOrZero(r, r.Array, "an array")
	if count > maxListElements {
		r.reject("expected a list of at most %d elements, found %d", maxListElements, count)
	}
	for range count {
		if r.err != nil {
			return
		}
		readElement()
	}
}

// checkRead rejects the message if the reader has failed. expected describes the value that the reader should have
// found.
func (r *controlReader) checkRead(expected string) {
	if r.Failed() {
		r.reject("expected %s, found %s", expected, describeByte(r.body, r.Pos()))
	}
}

// reject sets r.err to an error at the current position and makes the reader fail. It keeps an earlier error.
func (r *controlReader) reject(format string, args ...any) {
	if r.err == nil {
		r.err = malformed(r.operation, len(r.body)-r.Pos(), format, args...)
		r.Fail()
	}
}
