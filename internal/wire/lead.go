package wire

import "fmt"

// The lead bytes of msgpack: what a value is, and often how long.
const (
	fixMap      = 0x80 // to 0x8f, the low four bits are the count
	fixArray    = 0x90 // to 0x9f, the same
	fixStr      = 0xa0 // to 0xbf, the low five bits are the length
	nilLead     = 0xc0
	unused      = 0xc1 // stands for nothing, in any version of msgpack
	falseVal    = 0xc2
	trueVal     = 0xc3
	bin8        = 0xc4
	bin16       = 0xc5
	bin32       = 0xc6
	ext8        = 0xc7
	ext16       = 0xc8
	ext32       = 0xc9
	float32v    = 0xca
	float64v    = 0xcb
	uint8v      = 0xcc
	uint16v     = 0xcd
	uint32v     = 0xce
	uint64v     = 0xcf
	int8v       = 0xd0
	int16v      = 0xd1
	int32v      = 0xd2
	int64v      = 0xd3
	fixExt1     = 0xd4
	fixExt16    = 0xd8
	str8        = 0xd9
	str16       = 0xda
	str32       = 0xdb
	array16     = 0xdc
	array32     = 0xdd
	map16       = 0xde
	map32       = 0xdf
	fixNegative = 0xe0 // to 0xff, a negative number in one byte
)

// found says in words what stands at the start of b, for an error.
func found(b []byte) string {
	if len(b) == 0 {
		return "the end of the message"
	}
	return fmt.Sprintf("lead byte 0x%02x with %d bytes after it", b[0], len(b)-1)
}
