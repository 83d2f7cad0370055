package payload

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

type object = map[string]any

// payloadOf returns a payload with one group. It is encoded with the library, not with our encoder.
func payloadOf(t testing.TB, group any) []byte {
	t.Helper()
	return marshal(t, object{"Stats": []any{object{"Start": 20, "Duration": 10, "Stats": []any{group}}}})
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestDecode_EveryField(t *testing.T) {
	group := object{
		"Service":              "s",
		"Name":                 "n",
		"Resource":             "r",
		"Type":                 "web",
		"DBType":               "postgres",
		"SpanKind":             "server",
		"GRPCStatusCode":       "5",
		"HTTPMethod":           "GET",
		"HTTPEndpoint":         "/e",
		"srv_src":              "m",
		"HTTPStatusCode":       uint32(200),
		"Hits":                 uint64(math.MaxUint64),
		"Errors":               2,
		"TopLevelHits":         3,
		"Duration":             4,
		"OkSummary":            []byte{1},
		"ErrorSummary":         []byte{},
		"Synthetics":           true,
		"IsTraceRoot":          int32(2),
		"PeerTags":             []string{"a:b", "c:d"},
		"AdditionalMetricTags": []string{"x:y"}, "SpanDerivedPrimaryTags": []string{},
		"SomethingNew": object{"deep": []any{1.5, nil, []byte("x"), object{}, -7, "text"}},
	}
	raw := marshal(t, object{
		"Hostname": "h", "Env": "e", "Version": "v", "Lang": "go", "TracerVersion": "tv", "RuntimeID": "id",
		"Sequence":         uint8(7),
		"AgentAggregation": "aa",
		"Service":          "svc",
		"ContainerID":      "c",
		"Tags":             []string{"t"},
		"GitCommitSha":     "sha", "ImageTag": "i", "ProcessTagsHash": int64(9), "ProcessTags": "p:q",
		"Stats": []any{object{
			"Start": int64(20), "Duration": uint16(10), "AgentTimeShift": -3,
			"Stats": []any{group},
		}},
	})
	want := &Payload{
		Hostname: "h", Env: "e", Version: "v", Lang: "go", TracerVersion: "tv", RuntimeID: "id", Sequence: 7,
		AgentAggregation: "aa", Service: "svc", ContainerID: "c", Tags: []string{"t"}, GitCommitSha: "sha",
		ImageTag: "i", ProcessTagsHash: 9, ProcessTags: "p:q",
		Stats: []Bucket{{Start: 20, Duration: 10, AgentTimeShift: -3, Stats: []Group{{
			Labels: Labels{
				Service: "s", Name: "n", Resource: "r", Type: "web", DBType: "postgres", SpanKind: "server",
				GRPCStatusCode:       "5",
				HTTPMethod:           "GET",
				HTTPEndpoint:         "/e",
				ServiceSource:        "m",
				HTTPStatusCode:       200,
				Synthetics:           true,
				IsTraceRoot:          2,
				PeerTags:             []string{"a:b", "c:d"},
				AdditionalMetricTags: []string{"x:y"},
			},
			Hits:         math.MaxUint64,
			Errors:       2,
			TopLevelHits: 3,
			Duration:     4,
			OkSummary:    []byte{1},
			ErrorSummary: []byte{},
		}}}},
	}
	got, err := Decode(append(raw, "bytes after it"...))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("decoded\n%+v, want\n%+v", got, want)
	}
}

func TestDecode_EveryIntegerForm(t *testing.T) {
	for _, n := range []any{
		uint8(100), uint16(100), uint32(100), uint64(100), int8(100), int16(100),
		int32(100), int64(100),
	} {
		var buf bytes.Buffer
		enc := msgpack.NewEncoder(&buf) // encodes integers with the width of their Go type
		if err := enc.Encode(object{"Sequence": n}); err != nil {
			t.Fatal(err)
		}
		p, err := Decode(buf.Bytes())
		if err != nil || p.Sequence != 100 {
			t.Errorf("%T % x: %v, %v", n, buf.Bytes(), p, err)
		}
	}
}

func TestDecode_Refuses(t *testing.T) {
	deep := any(1)
	for range maxDepth + 1 {
		deep = []any{deep}
	}
	for name, raw := range map[string][]byte{
		"nothing":               {},
		"an array":              marshal(t, []any{}),
		"gzip":                  {0x1f, 0x8b, 8, 0, 0},
		"nil string":            marshal(t, object{"Hostname": nil}),
		"nil array":             marshal(t, object{"Stats": nil}),
		"nil bucket":            marshal(t, object{"Stats": []any{nil}}),
		"nil group":             payloadOf(t, nil),
		"nil tags":              payloadOf(t, object{"PeerTags": nil}),
		"nil sketch":            payloadOf(t, object{"OkSummary": nil}),
		"string for binary":     payloadOf(t, object{"OkSummary": "text"}),
		"binary for string":     payloadOf(t, object{"Service": []byte("text")}),
		"float for integer":     payloadOf(t, object{"Hits": 1.0}),
		"negative":              payloadOf(t, object{"Hits": -1}),
		"negative in 64 bits":   payloadOf(t, object{"Hits": int64(math.MinInt64)}),
		"status over 32 bits":   payloadOf(t, object{"HTTPStatusCode": uint64(1) << 32}),
		"bool for trace root":   payloadOf(t, object{"IsTraceRoot": true}),
		"trace root 33 bits":    payloadOf(t, object{"IsTraceRoot": int64(1) << 32}),
		"integer for bool":      payloadOf(t, object{"Synthetics": 1}),
		"too many elements":     tooMany(),
		"nested beyond reason":  marshal(t, object{"New": deep}),
		"meaningless lead":      append(append([]byte{0x81, 0xa3}, "New"...), 0xc1),
		"string beyond the end": {0x81, 0xa8, 'H'},
		"string of 4 GB":        append(append([]byte{0x81, 0xa3}, "Env"...), 0xdb, 0xff, 0xff, 0xff, 0xff),
		"binary of 4 GB": append(append([]byte{0x81, 0xa5, 'S', 't', 'a', 't', 's'}, 0x91, 0x81, 0xa5,
			'S', 't', 'a', 't', 's', 0x91, 0x81, 0xa9), append([]byte("OkSummary"), 0xc6, 0xff, 0xff, 0xff,
			0xff)...),
		"map of claims":          {0xdf, 0, 7, 0, 0},
		"key that is no text":    {0x81, 1, 1},
		"cut before the integer": append(append([]byte{0x81, 0xa8}, "Sequence"...), 0xcf, 0),
	} {
		if p, err := Decode(raw); err == nil {
			t.Errorf("%s: accepted as %+v", name, p)
		} else if panics := name == "nil bucket" ||
			name == "nil group"; panics != errors.Is(err, ErrNilElement) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// tooMany returns a payload with more tags than the agent accepts.
func tooMany() []byte {
	raw := append([]byte{0x81, 0xa4}, "Tags"...)
	raw = append(raw, 0xdd, 0, 7, 0xa1, 0x21) // 500,001
	return append(raw, bytes.Repeat([]byte{0xa0}, maxElements+1)...)
}

func TestSkip_EveryForm(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 1<<16)
	many := make([]int, 1<<16)
	for _, v := range []any{
		nil, true, 1, -1, uint64(math.MaxUint64), int64(math.MinInt64), float32(1), 1.5, "s",
		string(long[:40]),
		string(long[:300]), string(long), long[:1], long[:300], long,
		[]int{},
		many[:20], many,
		object{"a": 1},
	} {
		d := newDecoder(append(marshal(t, v), 0xc3))
		if err := d.skipValue(maxDepth); err != nil {
			t.Errorf("%T: %v", v, err)
		}
		if d.reader.Len() != 1 {
			t.Errorf("%T: %d bytes left, want 1", v, d.reader.Len())
		}
	}
	for lead, size := range map[byte]int{
		0xc7: 1 + 1 + 3, 0xc8: 2 + 1, 0xc9: 4 + 1, 0xd4: 2, 0xd5: 3, 0xd6: 5,
		0xd7: 9, 0xd8: 17,
	} {
		raw := make([]byte, 1+size)
		if raw[0] = lead; lead == 0xc7 {
			raw[1] = 3
		}
		if d := newDecoder(raw); d.skipValue(1) != nil || d.reader.Len() != 0 {
			t.Errorf("extension %#x: %d bytes left", lead, d.reader.Len())
		}
	}
}

// FuzzDecode checks that the library accepts every payload that Decode accepts, with the same
// strings.
func FuzzDecode(f *testing.F) {
	f.Add(payloadOf(f,
		object{"Service": "s", "Hits": 1, "PeerTags": []string{"a:b"}, "New": []any{object{"x": nil}}}))
	f.Add(marshal(f, object{"Hostname": "h", "Sequence": int64(3)}))
	f.Add([]byte{0xde, 0, 1, 0xa3, 'E', 'n', 'v', 0xd9, 1, 'x'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := Decode(raw)
		if err != nil {
			return
		}
		var generic struct{ Env, Service string }
		if err := msgpack.NewDecoder(bytes.NewReader(raw)).Decode(&generic); err != nil {
			return // the library rejects keys and extensions that the agent skips
		}
		if generic.Env != p.Env || generic.Service != p.Service {
			t.Errorf("read %q %q, the library %q %q", p.Env, p.Service, generic.Env, generic.Service)
		}
	})
}
