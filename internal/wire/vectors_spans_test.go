package wire

import (
	"fmt"
	"strings"
)

// bin returns the shortest encoding of a byte string in hex.
func bin(content string) string {
	if n := len(content) / 2; n < 256 {
		return fmt.Sprintf("c4%02x", n) + content
	}
	return fmt.Sprintf("c5%04x", len(content)/2) + content
}

// spans1 returns a batch of one snapshot: its key, then the other elements.
func spans1(header, key, rest string) string {
	return framed("92 05 dd 00000001", header, key, rest)
}

// The end of most spans in this file, in nanoseconds, and its encoding.
const (
	exampleEnd    = 1_800_000_000_000_000_000
	exampleEndHex = "cf 18fae27693b40000"
)

var (
	exampleKey = raw("99", strs("shop", "http.request", "GET /cart", "web", "server"), "c3 cc c8 c0",
		str("GET"))
	exampleLabels = obj{
		"service":    "shop",
		"operation":  "http.request",
		"resource":   "GET /cart",
		"type":       "web",
		"kind":       "server",
		"trace_root": true, "http_status": 200, "http_method": "GET",
	}
	leastKey    = raw("93", strs("shop", "job", "run"))
	leastLabels = obj{"service": "shop", "operation": "job", "resource": "run"}
)

// fact returns the meaning of a snapshot with a key or a number.
func fact(key any, duration, end any, isError, topLevel bool, weight any) obj {
	m := obj{"duration": duration, "end": end, "error": isError, "top_level": topLevel, "weight": weight}
	if labels, ok := key.(obj); ok {
		m["key"] = labels
	} else {
		m["number"] = key
	}
	return m
}

func batchOf(snapshots ...obj) obj {
	return obj{"snapshots": append([]obj{}, snapshots...)} // not nil, which is null in JSON
}

var defineVectors = []vector{
	{
		Name: "define", About: "number 0 for the example key", Canonical: true, Type: "define",
		Meaning: obj{"definitions": []obj{{"number": 0, "key": exampleLabels}}},
		Frame:   framed("92 04 dd 00000001 92 00", bin(exampleKey)),
	},
	{
		Name:      "define_several",
		About:     "three numbers, one of them given twice: the later key stands",
		Canonical: true,
		Type:      "define",
		Meaning: obj{"definitions": []obj{
			{"number": 1, "key": leastLabels},
			{"number": 300, "key": exampleLabels},
			{"number": 8191, "key": leastLabels},
			{"number": 1, "key": exampleLabels},
		}},
		Frame: framed("92 04 dd 00000004 92 01", bin(leastKey), "92 cd 012c", bin(exampleKey), "92 cd 1fff",
			bin(leastKey), "92 01", bin(exampleKey)),
	},
	{
		Name: "define_nothing", About: "", Canonical: true, Type: "define",
		Meaning: obj{"definitions": []obj{}},
		Frame:   framed("92 04 dd 00000000"),
	},
	{
		Name:    "define_wide",
		About:   "array16, a definition as array16, the number as int32, the key as bin32",
		Type:    "define",
		Meaning: obj{"definitions": []obj{{"number": 5, "key": leastLabels}}},
		Frame: framed("92 04 dc 0001 dc 0002 d2 00000005", fmt.Sprintf("c6 %08x", len(leastKey)/2),
			leastKey),
	},
}

var spansVectors = []vector{
	{
		Name: "spans_whole", About: "a key sent whole", Canonical: true, Type: "spans",
		Meaning: batchOf(fact(exampleLabels, 12345678, exampleEnd, false, true, 1)),
		Frame:   spans1("94", bin(exampleKey), "ce 00bc614e"+exampleEndHex+"02"),
	},
	{
		Name:      "spans_numbered",
		About:     "keys named by their numbers, as in the example of the documentation",
		Canonical: true,
		Type:      "spans",
		Meaning: batchOf(fact(0, 12345678, exampleEnd, false, true, 1),
			fact(0, 250, exampleEnd, true, true, 2.5)),
		Frame: framed("92 05 dd 00000002", "94 00 ce 00bc614e", exampleEndHex, "02",
			"95 00 cc fa", exampleEndHex, "03 cb 4004000000000000"),
	},
	{
		Name: "spans_mixed", About: "a whole key between numbered ones", Canonical: true, Type: "spans",
		Meaning: batchOf(fact(255, 0, 0, false, false, 1), fact(leastLabels, 1, 1, true, false, 10),
			fact(70000, 65535, 65536, false, false, 1)),
		Frame: framed("92 05 dd 00000003", "94 cc ff 00 00 00", "95", bin(leastKey), "01 01 01 0a",
			"94 ce 00011170 cd ffff ce 00010000 00"),
	},
	{
		Name: "spans_none", About: "a batch of nothing", Canonical: true, Type: "spans",
		Meaning: batchOf(),
		Frame:   framed("92 05 dd 00000000"),
	},
	{
		Name: "spans_short_header", About: "the batch as a fixarray", Type: "spans",
		Meaning: batchOf(fact(1, 2, 3, false, false, 1)),
		Frame:   framed("92 05 91 94 01 02 03 00"),
	},
}

// keyVector returns a batch of one snapshot with this key.
func keyVector(name, about string, canonical bool, labels obj, key string) vector {
	return vector{
		Name: name, About: about, Canonical: canonical, Type: "spans",
		Meaning: batchOf(fact(labels, 1, 2, false, false, 1)), Frame: spans1("94", bin(key), "01 02 00"),
	}
}

var keyVectors = []vector{
	keyVector("key_least", "the three elements that are always there", true, leastLabels, leastKey),
	keyVector("key_empty_strings", "three empty strings", true, obj{}, "93a0a0a0"),
	keyVector("key_nils", "nil reads as empty", false, obj{}, "93c0c0c0"),
	keyVector("key_absent_as_nil", "all fourteen elements, each optional one nil", false, leastLabels,
		raw("9e", strs("shop", "job", "run"), "c0 c0 c0 c0 c0 c0 c0 c0 c0 c0 c0")),
	keyVector("key_absent_as_empty", "all fourteen elements, each optional one empty", false, leastLabels,
		raw("9e", strs("shop", "job", "run"), "a0 a0 c0 00 90 a0 a0 a0 a0 c2 90")),
	keyVector("key_whole", "every label", true, obj{
		"service":       "shop",
		"operation":     "grpc.client",
		"resource":      "/cart.Cart/Get",
		"type":          "rpc",
		"kind":          "client",
		"trace_root":    false,
		"http_status":   503,
		"peer_tags":     []string{"peer.service:cart", "rpc.system:grpc"},
		"http_method":   "POST",
		"http_endpoint": "/cart/{id}", "grpc_status": "14", "service_source": "m", "synthetics": true,
		"additional_tags": []string{"tier:gold", "region:eu"},
	}, raw("9e", strs("shop", "grpc.client", "/cart.Cart/Get", "rpc", "client"), "c2 cd 01f7 92",
		strs("peer.service:cart", "rpc.system:grpc"),
		strs("POST", "/cart/{id}", "14", "m"), "c3 92", strs("tier:gold", "region:eu"))),
	keyVector("key_only_the_last", "nils up to the additional tags", true,
		obj{
			"service": "shop", "operation": "job", "resource": "run",
			"additional_tags": []string{"tier:gold"},
		},
		raw("9e", strs("shop", "job", "run"), "c0 c0 c0 c0 c0 c0 c0 c0 c0 c0 91", str("tier:gold"))),
	keyVector("key_utf8", "text beyond ASCII", true,
		obj{"service": "büro", "operation": "öffnen", "resource": "日本"},
		raw("93", strs("büro", "öffnen", "日本"))),
	keyVector("key_longest", "a service of 100 bytes and a resource of 5000, kept whole", true,
		obj{"service": strings.Repeat("s", 100), "operation": "o", "resource": strings.Repeat("r", 5000)},
		raw("93", str(strings.Repeat("s", 100)), str("o"), str(strings.Repeat("r", 5000)))),
	keyVector("key_too_long", "a service of 300 bytes and a resource of 6000: well formed, cut by the daemon",
		true,
		obj{"service": strings.Repeat("s", 300), "operation": "o", "resource": strings.Repeat("r", 6000)},
		raw("93", str(strings.Repeat("s", 300)), str("o"), str(strings.Repeat("r", 6000)))),
	keyVector("key_most_tags", "256 peer tags, which the daemon cuts to 64", true,
		obj{
			"service": "s", "operation": "o", "resource": "r",
			"peer_tags": strings.Split(strings.Repeat("a:b ", 255)+"a:b", " "),
		},
		raw("98", strs("s", "o", "r"), "c0 c0 c0 c0 dc 0100", strings.Repeat(str("a:b"), 256))),
	keyVector("key_str8_16_32", "strings in longer forms than they need, and an array32", false, leastLabels,
		raw("dd 00000003 d9 04", "'shop", "da 0003", "'job", "db 00000003", "'run")),
	keyVector("key_status_wide", "the HTTP status as uint64", false,
		obj{"service": "s", "operation": "o", "resource": "r", "http_status": 200},
		raw("97", strs("s", "o", "r"), "c0 c0 c0 cf 00000000000000c8")),
}
