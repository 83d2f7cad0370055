package wire

import (
	"iter"
	"math"
	"reflect"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// A cold message is a struct. The tag "wire" of a field is its name in the message,
// and "omitzero" behind it leaves the field out where it is empty. Fields are written in
// the order of the struct, and read in any. Those of an embedded struct are the message's; one
// that is called "-" is none of the message.

// coldName is the name of a field in its message.
func coldName(field reflect.StructField) (name string, omitZero bool) {
	return strings.CutSuffix(field.Tag.Get("wire"), ",omitzero")
}

// appendCold appends a whole frame with a message, which is a pointer to a struct.
func appendCold(dst []byte, t Type, message any) []byte {
	start := len(dst)
	dst = appendFields(beginFrame(dst, t), reflect.ValueOf(message).Elem())
	endFrame(dst, start)
	return dst
}

// coldFields are the fields of a message with what stands in them.
func coldFields(message reflect.Value) iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		for i := range message.NumField() {
			switch of := message.Type().Field(i); {
			case of.Tag.Get("wire") == "-":
				continue
			case !of.Anonymous:
				if !yield(of, message.Field(i)) {
					return
				}
				continue
			}
			for of, field := range coldFields(message.Field(i)) {
				if !yield(of, field) {
					return
				}
			}
		}
	}
}

func appendFields(dst []byte, message reflect.Value) []byte {
	var names []string
	var values []reflect.Value
	for of, field := range coldFields(message) {
		if name, omitZero := coldName(of); !omitZero || !field.IsZero() {
			names, values = append(names, name), append(values, field)
		}
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

// appendTexts writes as much of the list as a reader takes.
func appendTexts(dst []byte, list []string) []byte {
	kept, size := 0, 0
	for kept < min(len(list), maxListElements) && size+len(list[kept]) <= maxListBytes {
		size += len(list[kept])
		kept++
	}
	dst = appendArray(dst, kept)
	for _, s := range list[:kept] {
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

// appendMap writes the header of a map of at most 65535 pairs.
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

// The largest list in a cold message: what a writer cuts a list to, and what a
// reader refuses to go beyond. The lists are advice to a tracer, so a shorter
// one costs some work and loses nothing.
const (
	maxListElements = 1024
	maxListBytes    = 64 << 10
)

// maxDepth is how many maps and arrays of a cold message may lie in one another.
// Its own are two, three in welcome; the rest is for what later versions add.
const maxDepth = 8

// coldReader reads the fields of a cold message into values of their own. A nil reads
// as the zero value everywhere. The first fault sticks, and nothing is read after it.
//
// It reads with our own reader and not with a library, because tracers link it as part of
// package client, which has no dependencies.
type coldReader struct {
	msgpack.Reader
	doing string
	body  []byte
	err   error
}

// readCold reads a body that is a map into a message. After an error the message is the
// zero one.
func readCold[M any](t Type, body []byte) (m M, err error) {
	err = readMap(t, body, func(r *coldReader, name string) { r.field(reflect.ValueOf(&m).Elem(), name) })
	if err != nil {
		m = *new(M)
	}
	return m, err
}

// readMap hands each entry of a body that is a map to entry, whose reader then stands at
// the entry's value.
func readMap(t Type, body []byte, entry func(r *coldReader, name string)) error {
	doing := "decode " + t.String()
	if err := validate(doing, body); err != nil {
		return err
	}
	r := &coldReader{Reader: msgpack.NewReader(body), doing: doing, body: body}
	r.entries(entry)
	return r.err
}

// validate checks that body is one whole value with nothing after it, nested no
// deeper than maxDepth: also what no field of this version reads.
func validate(doing string, body []byte) error {
	r := msgpack.NewReader(body)
	if r.SkipWithin(maxDepth); r.Failed() {
		return malformed(doing, len(body)-r.At(), "expected a whole value, nested no deeper than %d, "+
			"found %s", maxDepth, found(body, r.At()))
	}
	if r.Left() != 0 {
		return malformed(doing, r.Left(), "%d bytes follow its one value", r.Left())
	}
	return nil
}

// entries reads a map whose keys are strings. A key that comes twice is read
// twice, so its last value stands.
func (r *coldReader) entries(entry func(r *coldReader, name string)) {
	for count := value(r, r.Map, "a map"); count > 0 && r.err == nil; count-- {
		name := r.Str()
		if r.expect("a string as a field's name"); r.err == nil {
			entry(r, string(name.Bytes(r.body)))
		}
	}
}

// field reads the field of a message that has this name, and skips one of a later version.
func (r *coldReader) field(message reflect.Value, name string) {
	for of, field := range coldFields(message) {
		if known, _ := coldName(of); known == name {
			r.into(field)
			return
		}
	}
	r.Skip()
}

func (r *coldReader) into(field reflect.Value) {
	switch to := field.Addr().Interface().(type) {
	case *string:
		*to = r.text()
	case *uint64:
		*to = r.number(math.MaxUint64)
	case *int: // a size in memory
		*to = int(r.number(math.MaxInt32))
	case *bool:
		*to = value(r, r.Bool, "a boolean")
	case *[]string:
		*to = r.texts()
	case *[]uint64:
		*to = nil
		r.list(func() { *to = append(*to, r.number(math.MaxUint64)) })
	default:
		field.SetZero()
		r.entries(func(r *coldReader, name string) { r.field(field, name) })
	}
}

// value reads a value that is not nil, and says what it should have been.
func value[V any](r *coldReader, read func() V, what string) (v V) {
	if r.IsNil() {
		return v
	}
	v = read()
	r.expect(what)
	return v
}

func (r *coldReader) text() string { return string(value(r, r.Str, "a string").Bytes(r.body)) }

func (r *coldReader) number(most uint64) uint64 {
	return value(r, func() uint64 {
		return r.Uint(most)
	}, "an integer that is not negative, and a size below 2^31")
}

func (r *coldReader) texts() []string {
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

func (r *coldReader) list(element func()) {
	count := value(r, r.Array, "an array")
	if count > maxListElements {
		r.fault("expected a list of at most %d elements, found %d", maxListElements, count)
	}
	for ; count > 0 && r.err == nil; count-- {
		element()
	}
}

// expect says what should have stood where the reader met a fault.
func (r *coldReader) expect(what string) {
	if r.Failed() {
		r.fault("expected %s, found %s", what, found(r.body, r.At()))
	}
}

func (r *coldReader) fault(format string, args ...any) {
	if r.err == nil {
		r.err = malformed(r.doing, len(r.body)-r.At(), format, args...)
		r.Fail()
	}
}
