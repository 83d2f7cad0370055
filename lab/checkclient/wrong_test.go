package checkclient

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// keyWith returns the key used in tests, after change.
func keyWith(change func(*span.Key)) []byte {
	k := span.Key{Service: "shop", Operation: "op", Resource: "r", Type: "web"}
	change(&k)
	return keyOf(k)
}

func batchOf(n int, key []byte) []byte {
	keys := make([][]byte, n)
	for i := range keys {
		keys[i] = key
	}
	return batch(keys...)
}

// endingAt returns a batch of one span whose end is the given number of nanoseconds since 1970.
func endingAt(end int64) []byte {
	b := wire.AppendWhole(wire.BeginSpans(nil), webKey(), 1, end, 0, 1)
	wire.EndSpans(b, 0, 1)
	return b
}

// spanOf returns a batch of one span with a duration and a weight.
func spanOf(duration uint64, weight float64) []byte {
	b := wire.AppendWhole(wire.BeginSpans(nil), webKey(), duration, noon.UnixNano(), 0, weight)
	wire.EndSpans(b, 0, 1)
	return b
}

func distinct(n int) []byte {
	var all []byte
	for i := range n {
		all = append(all, batch(keyWith(func(k *span.Key) { k.Type = fmt.Sprint("t", i) }))...)
	}
	return all
}

// littleEndian reverses the byte order of the frame's length.
func littleEndian(frame []byte) []byte {
	frame = bytes.Clone(frame)
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-wire.HeaderLen))
	return frame
}

func helloOf(m wire.Hello) []byte { return wire.AppendHello(nil, &m) }

// wrongClients are mistakes that authors of clients make, and the expected notes. All of them
// fail except those marked as well.
var wrongClients = []struct {
	name   string
	frames [][]byte
	want   []string
	well   bool
}{
	{name: "nothing", want: []string{"reason \"no_hello\"", "closed the connection before its hello"}},
	{
		name: "empty frame", frames: [][]byte{hello(), {0, 0, 0, 0}},
		want: []string{`reason "bad_frame", message 2, byte 0, hex "[00] 00 00 00"`},
	},
	{
		name: "little-endian length", frames: [][]byte{littleEndian(hello())},
		want: []string{
			`reason "too_large", message 1`,
			"a frame's length is big-endian; little-endian this one says 73",
		},
	},
	{
		name: "half a frame", frames: [][]byte{hello(), batch(webKey())[:20]},
		want: []string{`reason "half_frame", message 2`, "the client closed the connection after 20 bytes"},
	},
	{
		name: "spans before hello", frames: [][]byte{batch(webKey())},
		want: []string{`reason "no_hello", message 1`, "the first message is spans"},
	},
	{
		name: "no version", frames: [][]byte{framed(0x92, 1, 0x80)},
		want: []string{`reason "bad_message", message 1, byte 2, hex "92 01 [80]`, "the version is missing"},
	},
	{
		name: "another version", frames: [][]byte{helloOf(wire.Hello{Version: 2})},
		want: []string{`reason "version"`, "protocol version 2 is not supported; use version 1", `type "bye"`},
	},
	{
		name: "two hellos", frames: [][]byte{hello(), hello()},
		want: []string{`reason "bad_message", message 2, byte 0`, "handle message: unexpected hello"},
	},
	{
		name:   "a message of the daemon's",
		frames: [][]byte{hello(), wire.AppendFeatures(nil, &wire.Announcement{})},
		want:   []string{"handle message: unexpected features"},
	},
	{
		name: "unknown type", frames: [][]byte{hello(), framed(0x92, 9, 0x90)},
		want: []string{`message 2, byte 1, hex "92 [09] 90"`, "unknown message type 9"},
	},
	{
		name: "a map for an array", frames: [][]byte{hello(), framed(0x92, 5, 0x80)},
		want: []string{`byte 2, hex "92 05 [80]`, "expected an array"},
	},
	{
		name:   "a string as a key",
		frames: [][]byte{hello(), framed(0x92, 5, 0x91, 0x94, 0xa2, 'a', 'b', 1, 2, 0)},
		want:   []string{`byte 4, hex "92 05 91 94 [a2]`, "a key, as a byte string or a number"},
	},
	{
		name: "a duration in seconds",
		frames: [][]byte{
			hello(),
			framed(0x92, 5, 0x91, 0x94, 0xc4, 4, 0x93, 0xa0, 0xa0, 0xa0, 0xcb, 0x3f, 0xe0, 0, 0, 0, 0, 0, 0,
				2, 0),
		},
		want: []string{`byte 10, hex`, "[cb]", "an integer as the duration"},
	},
	{
		name:   "an unknown flag",
		frames: [][]byte{hello(), framed(0x92, 5, 0x91, 0x94, 0xc4, 4, 0x93, 0xa0, 0xa0, 0xa0, 1, 2, 4)},
		want:   []string{`byte 12, hex`, "[04]", "flags with no bits but 0 and 1"},
	},
	{
		name: "a weight of NaN",
		frames: [][]byte{
			hello(),
			framed(0x92, 5, 0x91, 0x95, 0xc4, 4, 0x93, 0xa0, 0xa0, 0xa0, 1, 2, 0, 0xca, 0x7f, 0xc0, 0, 0),
		},
		want: []string{`byte 13, hex`, "[ca]", "a weight above 0 and at most 2^32, found lead byte 0xca"},
	},
	{
		name: "a weight below zero",
		frames: [][]byte{
			hello(),
			framed(0x92, 5, 0x91, 0x95, 0xc4, 4, 0x93, 0xa0, 0xa0, 0xa0, 1, 2, 0, 0xff),
		},
		want: []string{`byte 13, hex`, "[ff]", "a weight above 0 and at most 2^32, found lead byte 0xff"},
	},
	{
		name:   "a number as the reason of a bye",
		frames: [][]byte{hello(), framed(0x92, 8, 0x81, 0xa6, 'r', 'e', 'a', 's', 'o', 'n', 7)},
		want:   []string{`reason "bad_message", message 2, byte 10`, "expected a string, found lead byte 0x07"},
	},
	{
		name: "a lost without a map", frames: [][]byte{hello(), framed(0x92, 6, 0xc0)},
		want: []string{`reason "bad_message", message 2, byte 2`, "expected a map, found lead byte 0xc0"},
	},
	{
		name: "a flush without a map", frames: [][]byte{hello(), framed(0x92, 7, 0xc0)},
		want: []string{`reason "bad_message", message 2, byte 2`, "expected a map, found lead byte 0xc0"},
	},
	{
		name:   "an earlier of 65 bytes",
		frames: [][]byte{helloOf(wire.Hello{Version: wire.Version, Earlier: strings.Repeat("a", 65)})},
		want:   []string{`reason "bad_message", message 1`, "expected an earlier token of at most 64 bytes, found 65"},
	},
	{
		name:   "spans after a bye",
		frames: [][]byte{hello(), wire.AppendBye(nil, &wire.Bye{Reason: "exit"}), batchOf(3, webKey())},
		want:   []string{"dropped: 3 spans after the bye", "spans 3", "well false"},
	},
	{
		name: "a report behind a bye", well: true,
		frames: [][]byte{
			hello(), wire.AppendBye(nil, &wire.Bye{Reason: "exit"}),
			wire.AppendLost(nil, wire.Lost{"buffer_full": 7}),
		},
		want: []string{"advice: lost after the bye"},
	},
	{
		name: "a weight that is the rate", well: true, frames: [][]byte{hello(), spanOf(1, 0.1)},
		want: []string{"advice: weights are below 1: a weight is how many spans one stands for, 1 / rate"},
	},
	{
		name: "a negative duration", well: true,
		frames: [][]byte{
			hello(),
			framed(0x92, 5, 0x91, 0x94, 0xc4, 4, 0x93, 0xa0, 0xa0, 0xa0, 0xd1, 0xfc, 0x18, 2, 0),
		},
		want: []string{"normalized: a duration of -1000 becomes 0"},
	},
	{
		name: "an end as the duration", well: true,
		frames: [][]byte{hello(), spanOf(uint64(noon.UnixNano()), 1)},
		want:   []string{"advice: spans last longer than a week: a duration is nanoseconds from a span's start"},
	},
	{
		name: "the same in microseconds", well: true,
		frames: [][]byte{hello(), spanOf(uint64(noon.UnixMicro()), 1)},
		want:   []string{"advice: spans last longer than a week"},
	},
	{name: "a kind in capitals", well: true, frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
		k.Kind = "Client"
	}))}, want: []string{`advice: span_kind "Client" is not one of client, consumer, internal, producer, server`}},
	{name: "a status of no HTTP", well: true, frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
		k.HTTPStatus = 99999
	}))}, want: []string{"advice: http_status 99999 is not one of HTTP"}},
	{
		name: "a peer tag that nobody asked for", well: true,
		frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
			k.PeerTags = []string{"_dd.base_service:shop", "user.id:7"}
		}))}, want: []string{`advice: peer_tag "user.id" is none that features asks for`},
	},
	{name: "a tag twice", well: true, frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
		k.PeerTags = []string{"db.name:a", "db.name:b"}
	}))}, want: []string{`advice: peer_tag "db.name" stands twice in a list`}},
	{name: "a tag without a colon", well: true, frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
		k.AdditionalTags = []string{"premium"}
	}))}, want: []string{`advice: additional_tag "premium" has no colon`}},
	{
		name:   "a weight of zero",
		frames: [][]byte{hello(), framed(0x92, 5, 0x91, 0x95, 0xc4, 4, 0x93, 0xa0, 0xa0, 0xa0, 1, 2, 0, 0)},
		want:   []string{`byte 13, hex`, "[00]", "a weight above 0 and at most 2^32, found lead byte 0x00"},
	},
	{
		name: "a status as text",
		frames: [][]byte{
			hello(),
			framed(0x92, 5, 0x91, 0x94, 0xc4, 9, 0x97, 0xa0, 0xa0, 0xa0, 0xc0, 0xc0, 0xc0, 0xa1, '2', 1, 2,
				0),
		},
		want: []string{`byte 13, hex`, "[a1] 32", "element 6: expected the HTTP status"},
	},
	{
		name: "the same in a definition",
		frames: [][]byte{
			hello(),
			framed(0x92, 4, 0x91, 0x92, 7, 0xc4, 9, 0x97, 0xa0, 0xa0, 0xa0, 0xc0, 0xc0, 0xc0, 0xa1, '2'),
		},
		want: []string{`byte 14, hex`, "[a1] 32", "element 6"},
	},
	{
		name: "bytes behind a message", frames: [][]byte{hello(), framed(0x92, 5, 0x90, 1, 2)},
		want: []string{`byte 3, hex "92 05 90 [01] 02"`, "2 bytes follow"},
	},
	{
		name: "a number that nobody defined", frames: [][]byte{hello(), numbered(3)},
		want: []string{"number 3 is not defined on this connection", "byte 7"},
	},
	{
		name: "a number beyond max_keys", frames: [][]byte{hello(), define(8192, webKey())},
		want: []string{"number 8192 is not below 8192, the maximum in the welcome message"},
	},
	{
		name: "a batch beyond max_batch", frames: [][]byte{hello(), batchOf(1025, webKey())},
		want: []string{
			"dropped: a batch of 1025 spans, where welcome says max_batch 1024", "batch_too_large",
			"well false",
		},
	},
	{
		name: "messages of nothing", well: true,
		frames: [][]byte{hello(), framed(0x92, 4, 0x90), framed(0x92, 5, 0x90), framed(0x92, 6, 0x80)},
		want:   []string{"definitions 0", "#1 lost"},
	},
	{
		name: "a misspelt field", well: true,
		frames: [][]byte{framed(append([]byte{0x92, 1, 0x83, 0xa7},
			"version\x01\xa6client\xa1c\xa5orgin\x81\xa3env\xa4prod"...)...)},
		want: []string{"is a name misspelt?"},
	},
	{
		name: "an origin that is too long", well: true,
		frames: [][]byte{helloOf(wire.Hello{Version: 1, Origin: span.Origin{Env: strings.Repeat("e", 300)}})},
		want:   []string{`normalized: origin env "eee`, "(300 bytes)", "(200 bytes)"},
	},
	{name: "a service in capitals", well: true, frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
		k.Service = "My Shop!"
	}))}, want: []string{`normalized: service "My Shop!" becomes "my_shop"`}},
	{name: "no service", well: true, frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
		k.Service = ""
	}))}, want: []string{`normalized: service "" becomes "unnamed-python-service"`}},
	{name: "no resource", well: true, frames: [][]byte{hello(), define(0, keyWith(func(k *span.Key) {
		k.Resource = ""
	}))}, want: []string{`normalized: resource "" becomes "op"`}},
	{name: "text that is no UTF-8", well: true, frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
		k.Type = "a\xffb"
	}))}, want: []string{`normalized: type "a\xffb" becomes "a�b"`}},
	{
		name: "a resource that is too long", well: true,
		frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
			k.Resource = strings.Repeat("r", 6000)
		}))}, want: []string{"(6000 bytes)", "(5000 bytes)"},
	},
	{name: "too many additional tags", well: true, frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
		k.AdditionalTags = []string{"a:1", "b:1", "c:1", "d:1", "e:1"}
	}))}, want: []string{"of 5 additional_tags the first 4 are kept"}},
	{name: "tags out of order", well: true, frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
		k.PeerTags = []string{"out.host:db", "db.name:orders"}
	}))}, want: []string{`advice: peer_tags are not in the order of their bytes, as "out.host:db" before "db.name:orders"`}},
	{
		name: "a label over its budget", well: true, frames: [][]byte{hello(), distinct(33)},
		want: []string{`normalized: "type" has more than 32 distinct values`, span.Blocked},
	},
	{
		name: "a key in another form", well: true,
		frames: [][]byte{hello(), batch([]byte{0x95, 0xa1, 's', 0xa1, 'o', 0xa1, 'r', 0xa0, 0xa0})},
		want:   []string{"its 9 bytes are not the canonical 7"},
	},
	{
		name: "ends in milliseconds", well: true, frames: [][]byte{hello(), endingAt(noon.UnixMilli())},
		want: []string{"spans end before 2001: an end is in nanoseconds", "late 1"},
	},
	{
		name: "old spans", well: true,
		frames: [][]byte{hello(), endingAt(noon.UnixNano() - 60e9), endingAt(noon.UnixNano() - 61e9)},
		want:   []string{"this one 1m0s ago", "late 2"},
	},
	{
		name:   "a clock that is wrong",
		well:   true,
		frames: [][]byte{hello(), endingAt(noon.UnixNano() + 60e9)},
		want:   []string{"spans end after now, this one in 1m0s", "early 1"},
	},
	{
		name: "batches of one", well: true,
		frames: [][]byte{hello(), bytes.Repeat(append(define(0, webKey()), numbered(0)...), 10)},
		want:   []string{"advice: 1.0 spans a batch, 34 bytes a span", "six to seven times"},
	},
	{
		name: "keys whole again and again", well: true,
		frames: [][]byte{hello(), bytes.Repeat(batchOf(50, webKey()), 2)},
		want:   []string{"advice: 99 spans brought a key whole that had come before: 4752 of the 6622 bytes"},
	},
	{name: "what acts on a terminal", well: true, frames: [][]byte{hello(), batch(keyWith(func(k *span.Key) {
		k.Resource = "a\x1b[2J\u202eb\n"
	}))}, want: []string{`resource "a\x1b[2J\u202eb\n"`}},
}

// TestWrongClients_NamedMistakes: each common mistake gets its own sentence, and the exit
// code tells whether the mistake loses spans.
func TestWrongClients_NamedMistakes(t *testing.T) {
	for _, c := range wrongClients {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, 1, nil)
			s.send(t, c.frames...)
			out, err := s.wait(t)
			if (err == nil) != c.well {
				t.Errorf("the verdict is %v, and it should be well: %v", err, c.well)
			}
			for _, want := range append(c.want, fmt.Sprintf("well %v", c.well)) {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not in:\n%s", want, out)
				}
			}
			if strings.ContainsAny(out, "\x1b\u202e") {
				t.Errorf("what acts on a terminal got through:\n%q", out)
			}
		})
	}
}
