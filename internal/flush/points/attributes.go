package points

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of OTLP's messages of an attribute, and the one that attributes have in a list.
const (
	fieldList = 1 // of Resource and of ExponentialHistogramDataPoint

	fieldKey   = 1 // of KeyValue
	fieldValue = 2

	fieldText   = 1 // of AnyValue
	fieldBool   = 2
	fieldInt    = 3
	fieldArray  = 5
	fieldValues = 1 // of ArrayValue
)

// attributes writes a list of attributes as OTLP has it, fields with the number 1; or where
// labels is set as labels, which Labels reads. A name stands in it once: what comes first
// stays, because receivers refuse a list that names one twice, or keep any of the two.
//
// Equal lists are equal bytes where they were written in one order, so that series can
// be compared by them.
type attributes struct {
	labels labelNames // nil where it is no list of labels
	bytes  []byte
	names  []string
	value  []byte // of the attribute that is being written
}

// begin starts a list behind what was written before. The reserved names have their
// attributes elsewhere, so nothing in this list is called so.
func (a *attributes) begin(reserved ...string) {
	a.names = a.names[:0]
	for _, name := range reserved {
		a.names = append(a.names, a.named(name))
	}
}

// named is what an attribute is called in the list.
func (a *attributes) named(name string) string {
	if a.labels != nil {
		return a.labels.of(name)
	}
	return name
}

// text adds an attribute, unless its value is empty: an absent label and an empty one
// are the same.
func (a *attributes) text(name, value string) {
	switch {
	case value == "":
	case a.labels != nil:
		a.add(name, append(a.value[:0], valid(value)...))
	default:
		a.add(name, appendField(a.value[:0], fieldText, valid(value)))
	}
}

func (a *attributes) number(name string, value int64) {
	if a.labels != nil {
		a.add(name, strconv.AppendInt(a.value[:0], value, 10))
		return
	}
	a.add(name, appendVarint(a.value[:0], fieldInt, uint64(value)))
}

func (a *attributes) flag(name string, value bool) {
	if a.labels != nil {
		a.add(name, strconv.AppendBool(a.value[:0], value))
		return
	}
	a.add(name, appendVarint(a.value[:0], fieldBool, protowire.EncodeBool(value)))
}

// texts adds an attribute that is a list of texts, unless there is none. No dialect has one
// as a label.
func (a *attributes) texts(name string, values []string) {
	if len(values) == 0 {
		return
	}
	var list []byte
	for _, value := range values {
		list = appendField(list, fieldValues, appendField(nil, fieldText, valid(value)))
	}
	a.add(name, appendField(a.value[:0], fieldArray, list))
}

// add writes an attribute whose value is encoded.
func (a *attributes) add(name string, value []byte) {
	a.value = value
	if name = valid(a.named(name)); name == "" || slices.Contains(a.names, name) {
		return
	}
	a.names = append(a.names, name)
	if a.labels != nil {
		a.bytes = append(append(append(append(a.bytes, name...), labelEnd...), value...), labelEnd...)
		return
	}
	b := appendHead(a.bytes, fieldList, fieldSize(len(name))+fieldSize(len(value)))
	b = appendField(b, fieldKey, name)
	a.bytes = appendField(b, fieldValue, value)
}

// valid makes a text what protobuf takes. One that is not would cost the whole request.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// appendField appends a text or a message.
func appendField[T string | []byte](b []byte, field protowire.Number, value T) []byte {
	return append(appendHead(b, field, len(value)), value...)
}

// appendHead begins a text or a message of so many bytes.
func appendHead(b []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
}

func appendVarint(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

// fieldSize is what a message of so many bytes takes as a field, whose tag is one byte here.
func fieldSize(message int) int { return 1 + protowire.SizeBytes(message) }
