package oteltraces

import (
	"encoding/binary"
	"math"
)

// attributesAhead is for how many attributes of a span there is room before they are read.
const attributesAhead = 64

// valueKind says what an attribute's value was written as.
type valueKind uint8

const (
	isNothing valueKind = iota
	isOther             // a list or bytes, which no label is made of
	isText
	isInteger
	isNumber
	isBool
)

// tag is an attribute that some label is made of, as one span or resource has it.
type tag struct {
	label label
	kind  valueKind
	bits  uint64 // of isText the place, of isInteger an int64, of isNumber a float64, of isBool 0 or 1
}

func (t *tag) text() text { return text{uint32(t.bits), uint32(t.bits >> 32)} }

func bitsOf(t text) uint64 { return uint64(t.len)<<32 | uint64(t.at) }

// shortest is the fewest bytes of an attribute that commonAttributes reads: tag and length, and
// tag and length of its name, of its value, and of what that is.
const shortest = 8

// commonAttributes reads attributes of the form that nearly all have, up to the first of
// another form, and returns where that begins: a name before a value, both of less than 128
// bytes with all that is around them, and the value a text, a number or a yes or no. Which
// ones are wanted is nothing that a processor can foretell: so all are noted, and then kept
// or not.
func (p *payload) commonAttributes(b []byte, at int, lead byte, names *nameTable) (next int) {
	tags, kept := p.tags[:cap(p.tags)], len(p.tags)
	for kept < len(tags) && len(b)-at >= shortest && b[at] == lead {
		size := int(b[at+1])
		if size >= 0x80 || size > len(b)-at-2 || size < shortest-2 {
			break
		}
		pair := b[at+2 : at+2+size]
		length := int(pair[1])
		if pair[0] != byte(keyValueKey) || length > len(pair)-6 {
			break
		}
		name, written := pair[2:2+length], pair[2+length:]
		if written[0] != byte(keyValueValue) || int(written[1]) != len(written)-2 {
			break
		}
		t, ok := commonValue(written[2:], at+2+len(pair))
		if !ok {
			break
		}
		t.label = names.find(name)
		tags[kept] = t
		kept += wanted(t.label)
		at += 2 + size
	}
	p.tags = tags[:kept]
	return at
}

// commonValue reads a value that has two bytes at least and ends at a place of the body.
func commonValue(b []byte, end int) (t tag, ok bool) {
	switch uint32(b[0]) {
	case valueText:
		return tag{kind: isText, bits: bitsOf(textAt(end-len(b)+2, end))}, int(b[1]) == len(b)-2
	case valueInt:
		v, next := readVarint(b, 1)
		return tag{kind: isInteger, bits: v}, next == len(b)
	case valueBool:
		return tag{kind: isBool, bits: uint64(b[1])}, len(b) == 2 && b[1] <= 1
	case valueDouble:
		if len(b) == 9 {
			return tag{kind: isNumber, bits: binary.LittleEndian.Uint64(b[1:])}, true
		}
	}
	return t, false
}

// attribute reads an attribute of any form, from a place to the end of b.
func (p *payload) attribute(b []byte, at int, names *nameTable) {
	t, name := tag{}, text{}
	for at < len(b) {
		f, next := readField(b, at)
		if next == 0 {
			p.fail(ErrUnread)
			return
		}
		switch f.tag {
		case keyValueKey:
			name = textAt(f.at, next)
		case keyValueValue:
			if !t.read(b[:next], f.at) {
				p.fail(ErrUnread)
				return
			}
		}
		at = next
	}
	if t.label = names.find(name.of(p.body)); t.label == labelOther {
		return
	}
	if p.tags = append(p.tags, t); len(p.tags) > p.limits.tags {
		p.fail(ErrTooMuch)
	}
}

// read reads a value, from a place to the end of b. Of several the last one counts.
func (t *tag) read(b []byte, at int) bool {
	for at < len(b) {
		f, next := readField(b, at)
		if next == 0 {
			return false
		}
		switch f.tag {
		case valueText:
			t.kind, t.bits = isText, bitsOf(textAt(f.at, next))
		case valueInt:
			t.kind, t.bits = isInteger, f.value
		case valueBool:
			t.kind, t.bits = isBool, min(f.value, 1)
		case valueDouble:
			t.kind, t.bits = isNumber, f.value
		case valueBytes, valueIndex:
			t.kind, t.bits = isOther, 0
		case valueArray, valueList:
			t.kind, t.bits = isOther, 0
			if !isMessage(b[:next], f.at, parts[messageAnyValue][number(f.tag)], 1) {
				return false
			}
		}
		at = next
	}
	return true
}

// number is the value as a float64, if it is a number.
func (t *tag) number() (float64, bool) {
	switch t.kind {
	case isInteger:
		return float64(int64(t.bits)), true
	case isNumber:
		return math.Float64frombits(t.bits), true
	}
	return 0, false
}
