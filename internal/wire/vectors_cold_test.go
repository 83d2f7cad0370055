package wire

import (
	"fmt"
	"strings"
)

// str returns the shortest encoding of a string in hex.
func str(s string) string {
	switch {
	case len(s) < 32:
		return raw(fmt.Sprintf("%02x", 0xa0+len(s)), "'"+s)
	case len(s) < 256:
		return raw(fmt.Sprintf("d9 %02x", len(s)), "'"+s)
	}
	return raw(fmt.Sprintf("da %04x", len(s)), "'"+s)
}

// strs returns the encodings of several strings in hex.
func strs(list ...string) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString(str(s))
	}
	return b.String()
}

var coldVectors = []vector{
	{
		Name: "hello_least", About: "a tracer that says nothing of itself", Canonical: true, Type: "hello",
		Meaning: obj{"version": 1, "client": "", "origin": obj{}},
		Frame:   framed("92 01 83", str("version"), "01", str("client"), "a0", str("origin"), "80"),
	},
	{
		Name: "hello", About: "what most tracers send", Canonical: true, Type: "hello",
		Meaning: obj{
			"version": 1, "client": "example/1.0",
			"origin": obj{"env": "prod", "service": "shop", "lang": "python"},
		},
		Frame: framed("92 01 83", str("version"), "01", str("client"), str("example/1.0"), str("origin"),
			"83",
			strs("env", "prod", "service", "shop", "lang", "python")),
	},
	{
		Name: "hello_whole_origin", About: "every field of the origin", Canonical: true, Type: "hello",
		Meaning: obj{"version": 1, "client": "example/1.0", "origin": obj{
			"host":             "node-7",
			"env":              "prod",
			"version":          "2.1.0",
			"service":          "shop",
			"lang":             "java",
			"lang_version":     "25",
			"lang_interpreter": "OpenJDK",
			"tracer_version":   "1.60.0",
			"runtime_id":       "0b5e",
			"container_id":     "c0ffee",
			"entity_id":        "ci-c0ffee",
			"external_env":     "it-false,cn-shop",
			"process_tags":     "entrypoint.name:shop,svc.auto:shop",
			"git_commit_sha":   "9f1c", "obfuscation_version": "1",
		}},
		Frame: framed("92 01 83", str("version"), "01", str("client"), str("example/1.0"), str("origin"),
			"8f",
			strs("host", "node-7", "env", "prod", "version", "2.1.0", "service", "shop", "lang", "java",
				"lang_version", "25"),
			strs("lang_interpreter", "OpenJDK", "tracer_version", "1.60.0", "runtime_id", "0b5e",
				"container_id", "c0ffee"),
			strs("entity_id", "ci-c0ffee", "external_env", "it-false,cn-shop", "process_tags",
				"entrypoint.name:shop,svc.auto:shop"),
			strs("git_commit_sha", "9f1c", "obfuscation_version", "1")),
	},
	{
		Name:      "hello_settled",
		About:     "a tracer that wants to know how many of its spans are settled",
		Canonical: true,
		Type:      "hello",
		Meaning:   obj{"version": 1, "client": "", "origin": obj{}, "settled": true},
		Frame: framed("92 01 84", str("version"), "01", str("client"), "a0", str("origin"), "80",
			str("settled"), "c3"),
	},
	{
		Name:      "hello_earlier",
		About:     "a tracer whose last connection ended without a bye",
		Canonical: true,
		Type:      "hello",
		Meaning:   obj{"version": 1, "client": "", "origin": obj{}, "settled": true, "earlier": "k3f9-17"},
		Frame: framed("92 01 85", str("version"), "01", str("client"), "a0", str("origin"), "80",
			str("settled"), "c3",
			strs("earlier", "k3f9-17")),
	},
	{
		Name:    "hello_any_order",
		About:   "fields in another order, nils, wide integers, map16, fields of a later version, one of them an extension",
		Type:    "hello",
		Meaning: obj{"version": 1, "client": "", "origin": obj{"env": "prod"}},
		Frame: framed("92 01 de 0006", str("origin"), "df 00000003", str("host"), "c0", str("pod"),
			"93 01 02 03", strs("env", "prod"),
			str("client"), "c0", str("later"), "81 c0 93 cb 3ff0000000000000 c2 c4 01 ff", str("sometime"),
			"d6 ff 68000000",
			str("sized"), "c7 03 05 010203", str("version"), "d3 0000000000000001"),
	},
	{
		Name:    "hello_nested_eight",
		About:   "an unknown field as deep as the limit allows, counting the body",
		Type:    "hello",
		Meaning: obj{"version": 1, "client": "", "origin": obj{}},
		Frame:   framed("92 01 82", str("version"), "01", str("x"), strings.Repeat("91", 7), "01"),
	},
	{
		Name: "hello_twice_the_same_field", About: "the last one stands", Type: "hello",
		Meaning: obj{"version": 1, "client": "second", "origin": obj{"env": "b"}},
		Frame: framed("92 01 85", str("version"), "01", strs("client", "first", "client", "second"),
			str("origin"), "81", strs("host", "a"), str("origin"), "81", strs("env", "b")),
	},
	{
		Name:      "hello_other_version",
		About:     "well formed; the daemon answers it with bye, reason version",
		Canonical: true,
		Type:      "hello",
		Meaning:   obj{"version": 7, "client": "", "origin": obj{}},
		Frame:     framed("92 01 83", str("version"), "07", str("client"), "a0", str("origin"), "80"),
	},
	{
		Name: "message_header_wide", About: "the array of two as array32 and the type as uint64", Type: "bye",
		Meaning: obj{"reason": "done", "detail": "", "versions": []int{}},
		Frame:   framed("dd 00000002 cf 0000000000000008 81", strs("reason", "done")),
	},
	{
		Name: "welcome", About: "the defaults of a daemon", Canonical: true, Type: "welcome",
		Meaning: obj{
			"version":       1,
			"daemon":        "spanstatsd 1.0.0",
			"max_frame":     1048576,
			"max_batch":     1024,
			"max_keys":      8192,
			"max_key_bytes": 7340032,
			"features": obj{
				"stats":            true,
				"peer_tags":        []string{"db.name", "peer.service"},
				"span_kinds":       []string{"client", "server"},
				"ignore_resources": []string{"GET /health"}, "obfuscation_version": 1,
			},
		},
		Frame: framed("92 02 87", str("version"), "01", strs("daemon", "spanstatsd 1.0.0"), str("max_frame"),
			"ce 00100000",
			str("max_batch"), "cd 0400", str("max_keys"), "cd 2000", str("max_key_bytes"), "ce 00700000",
			str("features"), "85", str("stats"), "c3",
			str("peer_tags"), "92", strs("db.name", "peer.service"), str("span_kinds"), "92",
			strs("client", "server"),
			str("ignore_resources"), "91", str("GET /health"), str("obfuscation_version"), "01"),
	},
	{
		Name:  "welcome_least",
		About: "the smallest limits; an absent features means that stats are not wanted",
		Type:  "welcome",
		Meaning: obj{
			"version":       1,
			"daemon":        "",
			"max_frame":     65536,
			"max_batch":     256,
			"max_keys":      0,
			"max_key_bytes": 0,
			"features": obj{
				"stats": false, "peer_tags": []string{}, "span_kinds": []string{},
				"ignore_resources": []string{}, "obfuscation_version": 0,
			},
		},
		Frame: framed("92 02 83", str("version"), "01", str("max_frame"), "ce 00010000", str("max_batch"),
			"cd 0100"),
	},
	{
		Name: "features", About: "", Canonical: true, Type: "features",
		Meaning: obj{
			"stats":               false,
			"peer_tags":           []string{},
			"span_kinds":          []string{"server"},
			"ignore_resources":    []string{},
			"obfuscation_version": 2,
		},
		Frame: framed("92 03 85", str("stats"), "c2", str("peer_tags"), "90", str("span_kinds"), "91",
			str("server"),
			str("ignore_resources"), "90", str("obfuscation_version"), "02"),
	},
	{
		Name:      "welcome_settled",
		About:     "a daemon that will say how many spans are settled",
		Canonical: true,
		Type:      "welcome",
		Meaning: obj{
			"version":       1,
			"daemon":        "",
			"max_frame":     65536,
			"max_batch":     256,
			"max_keys":      1024,
			"max_key_bytes": 65536,
			"features": obj{
				"stats": true, "peer_tags": []string{}, "span_kinds": []string{},
				"ignore_resources": []string{}, "obfuscation_version": 0,
			},
			"settled": true,
		},
		Frame: framed("92 02 88", str("version"), "01", str("daemon"), "a0", str("max_frame"), "ce 00010000",
			str("max_batch"), "cd 0100",
			str("max_keys"), "cd 0400", str("max_key_bytes"), "ce 00010000", str("features"), "85",
			str("stats"), "c3", str("peer_tags"), "90", str("span_kinds"), "90",
			str("ignore_resources"), "90", str("obfuscation_version"), "00", str("settled"), "c3"),
	},
	{
		Name:      "welcome_interval",
		About:     "a daemon that reports every ten seconds",
		Canonical: true,
		Type:      "welcome",
		Meaning: obj{
			"version":       1,
			"daemon":        "",
			"max_frame":     65536,
			"max_batch":     256,
			"max_keys":      1024,
			"max_key_bytes": 65536,
			"features": obj{
				"stats": true, "peer_tags": []string{}, "span_kinds": []string{},
				"ignore_resources": []string{}, "obfuscation_version": 0,
			},
			"interval": 10_000_000_000,
		},
		Frame: framed("92 02 88", str("version"), "01", str("daemon"), "a0", str("max_frame"), "ce 00010000",
			str("max_batch"), "cd 0100",
			str("max_keys"), "cd 0400", str("max_key_bytes"), "ce 00010000", str("features"), "85",
			str("stats"), "c3", str("peer_tags"), "90", str("span_kinds"), "90",
			str("ignore_resources"), "90", str("obfuscation_version"), "00", str("interval"),
			"cf 00000002540be400"),
	},
	{
		Name:      "welcome_token",
		About:     "a daemon whose next one will know this connection",
		Canonical: true,
		Type:      "welcome",
		Meaning: obj{
			"version":       1,
			"daemon":        "",
			"max_frame":     65536,
			"max_batch":     256,
			"max_keys":      1024,
			"max_key_bytes": 65536,
			"features": obj{
				"stats": true, "peer_tags": []string{}, "span_kinds": []string{},
				"ignore_resources": []string{}, "obfuscation_version": 0,
			},
			"settled": true, "token": "m0x2-3",
		},
		Frame: framed("92 02 89", str("version"), "01", str("daemon"), "a0", str("max_frame"), "ce 00010000",
			str("max_batch"), "cd 0100",
			str("max_keys"), "cd 0400", str("max_key_bytes"), "ce 00010000", str("features"), "85",
			str("stats"), "c3", str("peer_tags"), "90", str("span_kinds"), "90",
			str("ignore_resources"), "90", str("obfuscation_version"), "00", str("settled"), "c3",
			strs("token", "m0x2-3")),
	},
	{
		Name:      "welcome_earlier",
		About:     "of the earlier connection 50 spans are settled, 30 more are doubtful, the next 400 were not sent",
		Canonical: true,
		Type:      "welcome",
		Meaning: obj{
			"version":       1,
			"daemon":        "",
			"max_frame":     65536,
			"max_batch":     256,
			"max_keys":      1024,
			"max_key_bytes": 65536,
			"features": obj{
				"stats": true, "peer_tags": []string{}, "span_kinds": []string{},
				"ignore_resources": []string{}, "obfuscation_version": 0,
			},
			"settled": true, "token": "m0x2-4", "earlier": []uint64{50, 0, 80, 1, 480, 2},
		},
		Frame: framed("92 02 8a", str("version"), "01", str("daemon"), "a0", str("max_frame"), "ce 00010000",
			str("max_batch"), "cd 0100",
			str("max_keys"), "cd 0400", str("max_key_bytes"), "ce 00010000", str("features"), "85",
			str("stats"), "c3", str("peer_tags"), "90", str("span_kinds"), "90",
			str("ignore_resources"), "90", str("obfuscation_version"), "00", str("settled"), "c3",
			strs("token", "m0x2-4"),
			str("earlier"), "96 32 00 50 01 cd 01e0 02"),
	},
	{
		Name:      "features_settled",
		About:     "70000 spans of the connection have had their outcome",
		Canonical: true,
		Type:      "features",
		Meaning: obj{
			"stats": true, "peer_tags": []string{}, "span_kinds": []string{}, "ignore_resources": []string{},
			"obfuscation_version": 0, "settled": 70000,
		},
		Frame: framed("92 03 86", str("stats"), "c3", str("peer_tags"), "90", str("span_kinds"), "90",
			str("ignore_resources"), "90", str("obfuscation_version"), "00", str("settled"), "ce 00011170"),
	},
	{
		Name: "lost", About: "two reasons, in order", Canonical: true, Type: "lost",
		Meaning: obj{"lost": obj{"buffer_full": 1200, "closed": uint64(1) << 40}},
		Frame:   framed("92 06 82", str("buffer_full"), "cd 04b0", str("closed"), "cf 0000010000000000"),
	},
	{
		Name: "lost_nothing", About: "", Canonical: true, Type: "lost",
		Meaning: obj{"lost": obj{}},
		Frame:   framed("92 06 80"),
	},
	{
		Name: "flush_request", About: "", Canonical: true, Type: "flush",
		Meaning: obj{"id": 42, "ok": false, "error": ""},
		Frame:   framed("92 07 81", str("id"), "2a"),
	},
	{
		Name: "flush_answer", About: "", Canonical: true, Type: "flush",
		Meaning: obj{"id": 42, "ok": true, "error": ""},
		Frame:   framed("92 07 83", str("id"), "2a", str("ok"), "c3", str("error"), "a0"),
	},
	{
		Name: "flush_answer_failed", About: "", Canonical: true, Type: "flush",
		Meaning: obj{"id": 70000, "ok": false, "error": "the agent refused the connection"},
		Frame: framed("92 07 83", str("id"), "ce 00011170", str("ok"), "c2", str("error"),
			str("the agent refused the connection")),
	},
	{
		Name: "bye", About: "a tracer that leaves", Canonical: true, Type: "bye",
		Meaning: obj{"reason": "exit", "detail": "", "versions": []int{}},
		Frame:   framed("92 08 81", strs("reason", "exit")),
	},
	{
		Name:      "bye_version",
		About:     "a daemon that does not speak the version of the hello",
		Canonical: true,
		Type:      "bye",
		Meaning:   obj{"reason": "version", "detail": "version 7 is not spoken", "versions": []int{1}},
		Frame: framed("92 08 83", strs("reason", "version", "detail", "version 7 is not spoken"),
			str("versions"), "91 01"),
	},
}
