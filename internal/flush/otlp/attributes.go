package otlp

import (
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// attributes writes a list of attributes as fields with the number 1, which they have in
// a Resource and in an ExponentialHistogramDataPoint. A name stands in it once: what
// comes first stays, because receivers refuse a list that names one twice, or keep any
// of the two.
//
// Equal lists are equal bytes where they were written in one order, so that series can
// be compared by them.
type attributes struct {
	bytes []byte
	names []string
	value []byte // of the attribute that is being written
}

// begin starts a list behind what was written before. The reserved names have their
// attributes elsewhere, so nothing in this list is called so.
func (a *attributes) begin(reserved ...string) { a.names = append(a.names[:0], reserved...) }

// text adds an attribute, unless its value is empty: an absent label and an empty one
// are the same.
func (a *attributes) text(name, value string) {
	if value != "" {
		a.add(name, appendString(a.value[:0], fieldText, valid(value)))
	}
}

func (a *attributes) number(name string, value int64) {
	a.add(name, appendVarint(a.value[:0], fieldInt, uint64(value)))
}

func (a *attributes) flag(name string, value bool) {
	a.add(name, appendVarint(a.value[:0], fieldBool, protowire.EncodeBool(value)))
}

// texts adds an attribute that is a list of texts, unless there is none.
func (a *attributes) texts(name string, values []string) {
	if len(values) == 0 {
		return
	}
	var list []byte
	for _, value := range values {
		list = appendMessage(list, fieldValues, appendString(nil, fieldText, valid(value)))
	}
	a.add(name, appendMessage(a.value[:0], fieldArray, list))
}

// add writes an attribute whose value is encoded.
func (a *attributes) add(name string, value []byte) {
	a.value = value
	if name = valid(name); name == "" || slices.Contains(a.names, name) {
		return
	}
	a.names = append(a.names, name)
	b := appendHead(a.bytes, fieldPointAttributes, fieldSize(len(name))+fieldSize(len(value)))
	b = appendString(b, fieldKey, name)
	a.bytes = appendMessage(b, fieldValue, value)
}

// valid makes a text what protobuf takes. One that is not would cost the whole request.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// appendAttributes appends a list of attributes as fields of another number.
func appendAttributes(b []byte, field protowire.Number, list []byte) []byte {
	for len(list) > 0 {
		_, _, tag := protowire.ConsumeTag(list)
		attribute, size := protowire.ConsumeBytes(list[tag:])
		b = appendMessage(b, field, attribute)
		list = list[tag+size:]
	}
	return b
}
