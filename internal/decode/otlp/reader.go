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

	asGroup  = uint32(protowire.StartGroupType) // of which OTLP has none
	endGroup = uint32(protowire.EndGroupType)
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

// readLongField reads a field of any length, or a group.
func readLongField(b []byte, at int) (f field, next int) {
	if f.tag, at = readTag(b, at); at == 0 {
		return f, 0
	}
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
	case asGroup:
		next = readGroup(b, at, number(f.tag))
	}
	return f, next
}

func readTag(b []byte, at int) (tag uint32, next int) {
	v, next := readVarint(b, at)
	if v>>3 < uint64(protowire.MinValidNumber) || v>>3 > uint64(protowire.MaxValidNumber) {
		return 0, 0
	}
	return uint32(v), next
}

// readGroup steps over a group behind the tag that begins it, with all groups in it, and returns where
// it ends. Of those that are nested deeper than MaxDepth it does not look whose end is whose.
func readGroup(b []byte, at int, of uint32) (next int) {
	open := [MaxDepth]uint32{of}
	for depth := 1; depth > 0; {
		tag, behind := readTag(b, at)
		switch {
		case behind == 0:
			return 0
		case tag&7 == asGroup:
			if depth < MaxDepth {
				open[depth] = number(tag)
			}
			depth++
		case tag&7 == endGroup:
			if depth--; depth < MaxDepth && open[depth] != number(tag) {
				return 0
			}
		default:
			if _, behind = readField(b, at); behind == 0 {
				return 0
			}
		}
		at = behind
	}
	return at
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
