package wire

import "math"

// factsVector returns a batch of one snapshot with key number 1 and the given other elements.
func factsVector(name, about string, canonical bool, header, rest string, meaning obj) vector {
	return vector{
		Name: name, About: about, Canonical: canonical, Type: "spans",
		Meaning: batchOf(meaning), Frame: spans1(header, "01", rest),
	}
}

// Each number of a message, in every width.
var widthVectors = []vector{
	factsVector("duration_fixint", "", true, "94", "7f 00 00", fact(1, 127, 0, false, false, 1)),
	factsVector("duration_uint8", "", true, "94", "cc ff 00 00", fact(1, 255, 0, false, false, 1)),
	factsVector("duration_uint16", "", true, "94", "cd ffff"+exampleEndHex+"00",
		fact(1, 65535, exampleEnd, false, false, 1)),
	factsVector("duration_uint32", "", true, "94", "ce ffffffff"+exampleEndHex+"00",
		fact(1, uint32(math.MaxUint32), exampleEnd, false, false, 1)),
	factsVector("duration_uint64", "", true, "94", "cf ffffffffffffffff 00 00",
		fact(1, uint64(math.MaxUint64), 0, false, false, 1)),
	factsVector("duration_int8", "signed and not negative", false, "94", "d0 7f 00 00",
		fact(1, 127, 0, false, false, 1)),
	factsVector("duration_int16", "", false, "94", "d1 7fff 00 00",
		fact(1, math.MaxInt16, 0, false, false, 1)),
	factsVector("duration_int32", "", false, "94", "d2 7fffffff 00 00",
		fact(1, math.MaxInt32, 0, false, false, 1)),
	factsVector("duration_int64", "", false, "94", "d3 7fffffffffffffff 00 00",
		fact(1, math.MaxInt64, 0, false, false, 1)),
	factsVector("duration_negative_fixint", "less than 0 counts as 0", false, "94", "ff 00 00",
		fact(1, 0, 0, false, false, 1)),
	factsVector("duration_negative_int8", "", false, "94", "d0 80 00 00", fact(1, 0, 0, false, false, 1)),
	factsVector("duration_negative_int16", "", false, "94", "d1 8000 00 00", fact(1, 0, 0, false, false, 1)),
	factsVector("duration_negative_int32", "", false, "94", "d2 80000000 00 00",
		fact(1, 0, 0, false, false, 1)),
	factsVector("duration_negative_int64", "", false, "94", "d3 8000000000000000 00 00",
		fact(1, 0, 0, false, false, 1)),
	factsVector("duration_wide", "a small number in a wide form", false, "94", "cf 0000000000000005 00 00",
		fact(1, 5, 0, false, false, 1)),

	factsVector("end_int64", "the time as a signed number", false, "94", "00 d3 18fae27693b40000 00",
		fact(1, 0, exampleEnd, false, false, 1)),
	factsVector("end_largest", "", true, "94", "00 cf 7fffffffffffffff 00",
		fact(1, 0, math.MaxInt64, false, false, 1)),
	factsVector("end_negative_fixint", "before 1970", true, "94", "00 e0 00",
		fact(1, 0, -32, false, false, 1)),
	factsVector("end_negative_int8", "", true, "94", "00 d0 80 00", fact(1, 0, -128, false, false, 1)),
	factsVector("end_negative_int16", "", true, "94", "00 d1 8000 00", fact(1, 0, -32768, false, false, 1)),
	factsVector("end_negative_int32", "", true, "94", "00 d2 80000000 00",
		fact(1, 0, math.MinInt32, false, false, 1)),
	factsVector("end_smallest", "", true, "94", "00 d3 8000000000000000 00",
		fact(1, 0, math.MinInt64, false, false, 1)),

	factsVector("flags_error", "", true, "94", "00 00 01", fact(1, 0, 0, true, false, 1)),
	factsVector("flags_top_level", "", true, "94", "00 00 02", fact(1, 0, 0, false, true, 1)),
	factsVector("flags_both", "", true, "94", "00 00 03", fact(1, 0, 0, true, true, 1)),
	factsVector("flags_wide", "flags as uint16", false, "94", "00 00 cd 0002", fact(1, 0, 0, false, true, 1)),

	factsVector("weight_integer", "", true, "95", "00 00 00 0a", fact(1, 0, 0, false, false, 10)),
	factsVector("weight_integer_wide", "a weight as int64", false, "95", "00 00 00 d3 000000000000000a",
		fact(1, 0, 0, false, false, 10)),
	factsVector("weight_float64", "", true, "95", "00 00 00 cb 3fd5555555555555",
		fact(1, 0, 0, false, false, 1.0/3)),
	factsVector("weight_float32", "", false, "95", "00 00 00 ca 3f000000", fact(1, 0, 0, false, false, 0.5)),
	factsVector("weight_one_said", "the weight that its absence says", false, "95", "00 00 00 01",
		fact(1, 0, 0, false, false, 1)),
	factsVector("weight_smallest", "the least number above 0 of all", true, "95",
		"00 00 00 cb 0000000000000001", fact(1, 0, 0, false, false, math.SmallestNonzeroFloat64)),
	factsVector("weight_largest", "2^32", true, "95", "00 00 00 cb 41f0000000000000",
		fact(1, 0, 0, false, false, 1<<32)),
	factsVector("weight_largest_integer", "2^32 as uint64", false, "95", "00 00 00 cf 0000000100000000",
		fact(1, 0, 0, false, false, 1<<32)),

	factsVector("snapshot_array16", "the snapshot as array16", false, "dc 0004", "05 06 00",
		fact(1, 5, 6, false, false, 1)),
	factsVector("snapshot_array32", "the snapshot as array32, with a weight", false, "dd 00000005",
		"05 06 00 07", fact(1, 5, 6, false, false, 7)),

	numberVector("number_fixint", "7f", true, 127),
	numberVector("number_uint8", "cc 80", true, 128),
	numberVector("number_uint16", "cd 1fff", true, 8191),
	numberVector("number_uint32", "ce ffffffff", true, math.MaxUint32),
	numberVector("number_uint64", "cf 0000000000000003", false, 3),
	numberVector("number_int8", "d0 03", false, 3),
	numberVector("number_int16", "d1 0003", false, 3),
	numberVector("number_int32", "d2 00000003", false, 3),
	numberVector("number_int64", "d3 0000000000000003", false, 3),

	formVector("key_bin8", "c4 10"),
	formVector("key_bin16", "c5 0010"),
	formVector("key_bin32", "c6 00000010"),
}

func numberVector(name, number string, canonical bool, meaning uint32) vector {
	return vector{
		Name: name, About: "the number of a key", Canonical: canonical, Type: "spans",
		Meaning: batchOf(fact(meaning, 300, exampleEnd, false, false, 1)),
		Frame:   spans1("94", number, "cd 012c"+exampleEndHex+"00"),
	}
}

// formVector returns a batch with the shortest key, of 13 bytes, and three more labels, in the given encoding of its header.
func formVector(name, header string) vector {
	key := raw(header, "93", strs("shops", "jobs", "run"), "")
	return vector{
		Name:      name,
		About:     "a key as a byte string of that form",
		Canonical: name == "key_bin8",
		Type:      "spans",
		Meaning: batchOf(fact(obj{"service": "shops", "operation": "jobs", "resource": "run"}, 300,
			exampleEnd, false, false, 1)),
		Frame: spans1("94", key, "cd 012c"+exampleEndHex+"00"),
	}
}
