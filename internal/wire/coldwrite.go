package wire

import (
	"iter"
	"reflect"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
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
