package msgpack

// The lead bytes of values: what a value is, and often how long.
const (
	FixMap      = 0x80 // to 0x8f, the low four bits are the count
	FixArray    = 0x90 // to 0x9f, the same
	FixStr      = 0xa0 // to 0xbf, the low five bits are the length
	Nil         = 0xc0
	Unused      = 0xc1 // begins no value
	False       = 0xc2
	True        = 0xc3
	Bin8        = 0xc4
	Bin16       = 0xc5
	Bin32       = 0xc6
	Ext8        = 0xc7
	Ext16       = 0xc8
	Ext32       = 0xc9
	Float32     = 0xca
	Float64     = 0xcb
	Uint8       = 0xcc
	Uint16      = 0xcd
	Uint32      = 0xce
	Uint64      = 0xcf
	Int8        = 0xd0
	Int16       = 0xd1
	Int32       = 0xd2
	Int64       = 0xd3
	FixExt1     = 0xd4
	FixExt16    = 0xd8
	Str8        = 0xd9
	Str16       = 0xda
	Str32       = 0xdb
	Array16     = 0xdc
	Array32     = 0xdd
	Map16       = 0xde
	Map32       = 0xdf
	FixNegative = 0xe0 // to 0xff, a negative number in one byte
)

// IsMap and its siblings report whether a value of that kind begins with this byte.

func IsMap(lead byte) bool   { return lead&0xf0 == FixMap || lead == Map16 || lead == Map32 }
func IsArray(lead byte) bool { return lead&0xf0 == FixArray || lead == Array16 || lead == Array32 }
func IsStr(lead byte) bool   { return lead&0xe0 == FixStr || lead >= Str8 && lead <= Str32 }
func IsBin(lead byte) bool   { return lead >= Bin8 && lead <= Bin32 }
func IsBool(lead byte) bool  { return lead == False || lead == True }
