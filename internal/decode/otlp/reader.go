package otlp

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// The ways in which a field's value is written.
const (
	asVarint  = uint32(protowire.VarintType)
	asFixed64 = uint32(protowire.Fixed64Type)
	asBytes   = uint32(protowire.BytesType)
	asFixed32 = uint32(protowire.Fixed32Type)
)

// field is a field of a message. Its tag holds its number and how it is written, so that
// what stands under a known number but is written otherwise is another field, as it is to
// every decoder.
type field struct {
	tag   uint32
	value uint64 // of a number
	at    int    // where a text or a message begins; it ends where the next field begins
}

// number is that of a tag.
func number(tag uint32) uint32 { return tag >> 3 }

// readField reads the field that begins at a place of a message, which ends where b does, and
// returns where the next one begins: 0 if it cannot be read. Nearly all fields have a tag of one
// byte, and behind it a number of eight bytes, or a number or a length of one byte.
func readField(b []byte, at int) (f field, next int) {
	if len(b)-at < 2 || b[at] < 1<<3 || b[at] >= 0x80 {
		return readLongField(b, at)
	}
	behind := int(b[at+1])
	switch f.tag = uint32(b[at]); {
	case f.tag&7 == asFixed64 && len(b)-at > 8:
		f.value = binary.LittleEndian.Uint64(b[at+1:])
		return f, at + 9
	case behind >= 0x80:
	case f.tag&7 == asVarint:
		f.value = uint64(behind)
		return f, at + 2
	case f.tag&7 == asBytes && behind <= len(b)-at-2:
		f.at = at + 2
		return f, f.at + behind
	}
	return readLongField(b, at)
}

// readLongField reads a field of any length.
func readLongField(b []byte, at int) (f field, next int) {
	tag, at := readVarint(b, at)
	if at == 0 || tag>>3 < uint64(protowire.MinValidNumber) || tag>>3 > uint64(protowire.MaxValidNumber) {
		return f, 0
	}
	f.tag = uint32(tag)
	switch f.tag & 7 {
	case asVarint:
		f.value, next = readVarint(b, at)
	case asBytes:
		length, from := readVarint(b, at)
		if from == 0 || length > uint64(len(b)-from) {
			return f, 0
		}
		f.at, next = from, from+int(length)
	case asFixed64:
		if len(b)-at >= 8 {
			f.value, next = binary.LittleEndian.Uint64(b[at:]), at+8
		}
	case asFixed32:
		if len(b)-at >= 4 {
			f.value, next = uint64(binary.LittleEndian.Uint32(b[at:])), at+4
		}
	}
	return f, next // a group has no next
}

// readVarint reads a number and returns where it ends, 0 if it does not.
func readVarint(b []byte, at int) (v uint64, next int) {
	if at < len(b) && b[at] < 0x80 {
		return uint64(b[at]), at + 1
	}
	return readLongVarint(b, at)
}

func readLongVarint(b []byte, at int) (v uint64, next int) {
	v, n := protowire.ConsumeVarint(b[at:])
	if n < 0 {
		return 0, 0
	}
	return v, at + n
}
