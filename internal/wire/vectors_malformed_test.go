package wire

import "strings"

func bad(name, about string, message ...string) vector {
	return vector{Name: "malformed_" + name, About: about, Malformed: true, Frame: framed(message...)}
}

// badFacts returns a batch of one snapshot with the given encoding.
func badFacts(name, about string, snapshot ...string) vector {
	return bad(name, about, "92 05 dd 00000001", raw(snapshot...))
}

func badKey(name, about, key string) vector {
	return badFacts(name, about, "94", bin(key), "01 02 00")
}

const threeLabels = "a173 a16f a172"

var malformedVectors = []vector{
	bad("not_an_array", "a map where the message stands", "82 01 02 03 04"),
	bad("array_of_one", "a type and no body", "91 05"),
	bad("array_of_three", "", "93 05 90 90"),
	bad("no_body", "an array of two that ends after the type", "92 05"),
	bad("type_zero", "there is no message 0", "92 00 80"),
	bad("type_unknown", "there is no message 9", "92 09 80"),
	bad("type_wraps", "256 + 5 is not spans", "92 cd 0105 90"),
	bad("type_negative", "", "92 ff 80"),
	bad("type_string", "", "92 a1 35 90"),
	bad("after_the_message", "a second value in the frame", "92 08 80 c0"),

	bad("hello_no_version", "", "92 01 82", str("client"), "a0", str("origin"), "80"),
	bad("hello_version_nil", "", "92 01 81", str("version"), "c0"),
	bad("hello_version_string", "", "92 01 81", str("version"), str("1")),
	bad("hello_version_negative", "", "92 01 81", str("version"), "ff"),
	bad("hello_array", "the fields of a map as an array", "92 01 93 01 a0 80"),
	bad("hello_origin_number", "", "92 01 82", str("version"), "01", str("origin"), "81", str("host"), "07"),
	bad("hello_origin_bytes", "a byte string is no string", "92 01 82", str("version"), "01", str("origin"),
		"81", str("host"), "c4 01 61"),
	bad("hello_name_not_text", "a field whose name is a number", "92 01 82", str("version"), "01", "05 05"),
	bad("hello_name_nil", "", "92 01 82", str("version"), "01", "c0 c0"),
	bad("hello_cut", "it ends within a string", "92 01 82", str("version"), "01", str("client"), "a9",
		"'too"),
	bad("hello_entries_missing", "a map16 of more entries than it brings", "92 01 de 0005", str("version"),
		"01"),
	bad("hello_four_billion", "a map that claims four billion entries", "92 01 df ffffffff", str("version"),
		"01"),
	bad("hello_string_four_gigabytes", "", "92 01 82", str("version"), "01", str("client"), "db ffffffff 61"),
	bad("hello_nesting_bomb", "an unknown field of ten thousand arrays in one another", "92 01 82",
		str("version"), "01", str("x"), strings.Repeat("91", 10000)),
	bad("hello_nested_nine", "the ninth map or array in one another, counting the body", "92 01 82",
		str("version"), "01", str("x"), strings.Repeat("91", 8), "01"),
	bad("hello_unused_byte", "0xc1 stands for nothing in msgpack", "92 01 82", str("version"), "01", str("x"),
		"c1"),
	bad("hello_extension_body", "an extension in front of the body", "92 01 d4 00 00 81", str("version"),
		"01"),
	bad("welcome_frame_too_small", "a max_frame below 65536", "92 02 83", str("version"), "01",
		str("max_frame"), "cd ffff", str("max_batch"), "cd 0100"),
	bad("welcome_batch_too_small", "a max_batch below 256", "92 02 83", str("version"), "01",
		str("max_frame"), "ce 00010000", str("max_batch"), "cc ff"),
	bad("welcome_keys_too_many", "a max_keys of 2^31", "92 02 84", str("version"), "01", str("max_frame"),
		"ce 00010000", str("max_batch"), "cd 0100", str("max_keys"), "ce 80000000"),
	bad("features_bool", "a number where a boolean stands", "92 03 81", str("stats"), "01"),
	bad("features_list", "a string where a list stands", "92 03 81", str("peer_tags"), str("db.name")),
	bad("features_long_list", "1025 elements", "92 03 81", str("peer_tags"), "dc 0401",
		strings.Repeat("a0", 1025)),
	bad("lost_string", "", "92 06 81", strs("closed", "7")),
	bad("lost_float", "", "92 06 81", str("closed"), "cb 3ff0000000000000"),
	bad("lost_beyond", "2^48 + 1 spans", "92 06 81", str("closed"), "cf 0001000000000001"),
	bad("lost_many", "33 reasons", "92 06 de 0021", reasons(33)),
	bad("flush_id", "", "92 07 81", str("id"), "d0 ff"),
	bad("bye_versions", "", "92 08 81", str("versions"), "91", str("1")),
	bad("bye_reason", "", "92 08 81", str("reason"), "07"),
	bad("bye_nil", "nil where the map stands", "92 08 c0"),
	bad("lost_nil", "", "92 06 c0"),
	bad("flush_nil", "", "92 07 c0"),
	bad("hello_earlier_long", "an earlier of 65 bytes", "92 01 82", str("version"), "01", str("earlier"),
		"d9 41", strings.Repeat("61", 65)),

	bad("define_map", "", "92 04 81 01 c4 00"),
	bad("define_three", "a definition of three", "92 04 91 93 01", bin(leastKey), "00"),
	bad("define_negative", "", "92 04 91 92 ff", bin(leastKey)),
	bad("define_number_wide", "a number of 2^32", "92 04 91 92 cf 0000000100000000", bin(leastKey)),
	bad("define_key_string", "a key as a string", "92 04 91 92 01 a1 61"),
	bad("define_cut", "", "92 04 92 92 01", bin(leastKey), "92 02 c4 ff"),
	bad("define_trailing", "", "92 04 91 92 01", bin(leastKey), "00"),
	bad("define_four_billion", "", "92 04 dd ffffffff 92 01", bin(leastKey)),

	bad("spans_map", "", "92 05 81 01 02"),
	bad("spans_nil", "", "92 05 c0"),
	bad("spans_four_billion", "an array that claims four billion snapshots",
		"92 05 dd ffffffff 94 01 02 03 00"),
	bad("spans_one_more", "two claimed, one there", "92 05 dd 00000002 94 01 02 03 00"),
	bad("spans_trailing", "one claimed, two there", "92 05 dd 00000001 94 01 02 03 00 94 01 02 03 00"),
	bad("spans_trailing_byte", "", "92 05 dd 00000001 94 01 02 03 00 c0"),
	bad("spans_header_cut", "", "92 05 dd 0000"),
	badFacts("snapshot_three", "no flags", "93 01 02 03 00"),
	badFacts("snapshot_six", "", "96 01 02 03 00 01 01"),
	badFacts("snapshot_map", "", "82 01 02 03 00"),
	badFacts("snapshot_cut", "it ends after a wide header", "dd 00000004"),
	badFacts("key_string", "a key as a string", "94 a1 61 02 03 00"),
	badFacts("key_nil", "", "94 c0 02 03 00"),
	badFacts("key_negative", "", "94 ff 02 03 00"),
	badFacts("key_number_wide", "a number of 2^32", "94 cf 0000000100000000 02 03 00"),
	badFacts("key_bin_cut", "a key longer than the message", "94 c4 ff 93 a0 a0 a0 01 02 00"),
	badFacts("key_bin32_cut", "a key of four gigabytes", "94 c6 ffffffff 93 a0 a0 a0 01 02 00"),
	badFacts("duration_float", "", "94 01 cb 3ff0000000000000 03 00"),
	badFacts("duration_cut", "", "94 01 00 cf 000000"),
	badFacts("end_nil", "", "94 01 02 c0 00"),
	badFacts("end_beyond_int64", "", "94 cd 0101 ce 00010000 cf 8000000000000000 00"),
	badFacts("end_float", "", "94 01 02 cb 3ff0000000000000 00"),
	badFacts("flags_unknown", "bit 2", "94 cd 0101 ce 00010000", exampleEndHex, "04"),
	badFacts("flags_unknown_high", "bit 32", "94 01 02 03 cf 0000000100000000"),
	badFacts("flags_negative", "", "94 01 02 03 ff"),
	badFacts("flags_bool", "", "94 01 02 03 c3"),
	badFacts("weight_zero", "", "95 01 02 03 00 00"),
	badFacts("weight_negative", "", "95 01 02 03 00 ff"),
	badFacts("weight_nan", "", "95 01 02 03 00 cb 7ff8000000000000"),
	badFacts("weight_infinite", "", "95 01 02 03 00 ca 7f800000"),
	badFacts("weight_too_large", "the next float64 above 2^32", "95 01 02 03 00 cb 41f0000000000001"),
	badFacts("weight_nil", "", "95 01 02 03 00 c0"),
	badFacts("weight_string", "", "95 01 02 03 00 a1 31"),
	badFacts("weight_cut", "", "95 01 02 03 00 cb 3ff0"),

	badKey("key_of_nothing", "a byte string of no bytes", ""),
	badKey("key_map", "", "80"),
	badKey("key_two", "two elements", raw("92 a173 a16f")),
	badKey("key_fifteen", "fifteen elements", raw("9f", threeLabels, strings.Repeat("c0", 12))),
	badKey("key_cut", "", raw("94", threeLabels)),
	badKey("key_trailing", "", raw("93", threeLabels, "c0")),
	badKey("key_service_number", "", raw("93 07 a16f a172")),
	badKey("key_service_bytes", "", raw("93 c40173 a16f a172")),
	badKey("key_trace_root_number", "", raw("96", threeLabels, "c0 c0 01")),
	badKey("key_status_string", "", raw("97", threeLabels, "c0 c0 c0", str("200"))),
	badKey("key_status_negative", "", raw("97", threeLabels, "c0 c0 c0 ff")),
	badKey("key_status_wide", "a status of 2^32", raw("97", threeLabels, "c0 c0 c0 cf 0000000100000000")),
	badKey("key_tags_string", "", raw("98", threeLabels, "c0 c0 c0 c0", str("a:b"))),
	badKey("key_tag_number", "", raw("98", threeLabels, "c0 c0 c0 c0 91 07")),
	badKey("key_tags_many", "257 peer tags",
		raw("98", threeLabels, "c0 c0 c0 c0 dc 0101", strings.Repeat("a0", 257))),
	badKey("key_tags_four_billion", "", raw("98", threeLabels, "c0 c0 c0 c0 dd ffffffff")),
	badKey("key_synthetics_number", "", raw("9d", threeLabels, strings.Repeat("c0", 9), "01")),
	badKey("key_string_cut", "a label longer than the key", raw("93 a173 a16f db ffffffff 72")),
}

// reasons returns n different entries of a lost message.
func reasons(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(str("r"+string(rune('a'+i%26))+string(rune('a'+i/26))) + "01")
	}
	return b.String()
}
