package zipkin

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// decoded returns the spans of a body, decoded by a new Decoder.
func decoded(body []byte, isProtobuf bool) ([]string, error) {
	var d Decoder
	var r otlp.Request
	decode := d.JSON
	if isProtobuf {
		decode = d.Protobuf
	}
	err := decode(&r, body, ofSpans, ofResources)
	if err != nil {
		return nil, err
	}
	return shown(&r), nil
}

// everything is a request with all fields, as zipkin-js and other reporters write them, and with
// spans that lack optional fields.
const everything = ` [ {
	"traceId": "5af7183fb1d4cf5f00f067aa0ba902b7", "id": "352bff9a74ca9ad2", "parentId": "6b221d5bc9e6496c",
	"name": "get \u002f\u00e9", "kind": "SERVER", "timestamp": 1556604172355737, "duration": "1431",
	"localEndpoint": {"serviceName": "sh\"op", "ipv4": "127.0.0.1", "port": 80},
	"remoteEndpoint": {"ipv6": "::1", "serviceName": null, "port": 1},
	"tags": {"http.method": "GET", "http.status_code": 200, "error": "", "http.path": "/\n", "service.version": "1.0", "http\u002eroute": "/{id}"},
	"annotations": [{"timestamp": 1556604172355737, "value": "[{\"}]"}], "debug": false, "shared": true, "later": {"x": [null]}
}, {"id": "1", "traceId": "2", "duration": 1e3, "parentId": null, "tags": null, "remoteEndpoint": {"serviceName": "db"}, "shared": true},
{"id": "1", "traceId": "2", "timestamp": 5, "tags": {"http.route": "/unfinished"}},
{"id": "7", "traceId": "2", "parentId": "7", "kind": "CLIENT", "timestamp": -5, "duration": 9,
 "tags": {"db.system": "a", "db.system": "b", "otel.status_code": "OK", "w3c.tracestate": "ot=th:8", "peer.service": "tagged"}, "localEndpoint": {}} ] `

func TestBody_AllFields(t *testing.T) {
	got, err := decoded([]byte(everything), false)
	want := []string{
		`5af7183fb1d4cf5f00f067aa0ba902b7/352bff9a74ca9ad2<6b221d5bc9e6496c "get /é" server 1556604172355737000+1431000 2 state=""` +
			` http.method="GET" http.route="/{id}" http.status_code="200" sender service.name="sh\"op" sender service.version="1.0"`,
		`00000000000000002/1<1 "" internal 0+1000000 0 state="" peer.service="db"`,
		`00000000000000002/7<0 "" client 0+9000 1 state="ot=th:8" db.system="b" peer.service="tagged"`,
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%s", err, strings.Join(got, "\n"))
	}
}

// TestEncodings_Equivalent decodes random spans from JSON and protobuf with one Decoder, and
// compares them with the model.
func TestEncodings_Equivalent(t *testing.T) {
	var d Decoder
	var r otlp.Request
	for seed := range uint64(3000) {
		spans := randomSpans(rand.New(rand.NewPCG(seed, 33)))
		var want []string
		for i := range spans {
			if text := spans[i].want(); text != "" {
				want = append(want, text)
			}
		}
		errJSON := d.JSON(&r, inJSON(spans), ofSpans, ofResources)
		fromJSON := shown(&r)
		errProtobuf := d.Protobuf(&r, inProtobuf(spans), ofSpans, ofResources)
		if fromProtobuf := shown(&r); errJSON != nil || errProtobuf != nil || !slices.Equal(fromJSON, want) ||
			!slices.Equal(fromProtobuf, want) {
			t.Fatalf("seed %d: %v, %v\n%s\nJSON     %q\nprotobuf %q\nwant     %q", seed, errJSON, errProtobuf,
				inJSON(spans), fromJSON, fromProtobuf, want)
		}
	}
}

// TestResource_SharedByAdjacentSpans checks that adjacent spans of a service share a resource.
func TestResource_SharedByAdjacentSpans(t *testing.T) {
	var d Decoder
	var r otlp.Request
	var spans []reported
	for i, service := range []string{"a", "a", "b", "b", "a"} {
		spans = append(spans, reported{low: 1, id: uint64(i + 1), duration: 1, service: service})
	}
	if err := d.JSON(&r, inJSON(spans), ofSpans, ofResources); err != nil || len(r.Resources) != 3 ||
		len(r.Spans) != 5 {
		t.Errorf("%v: %d resources", err, len(r.Resources))
	}
}

// TestBody_Truncated checks that truncated requests are rejected. Protobuf that is
// truncated between two spans is valid, with fewer spans.
func TestBody_Truncated(t *testing.T) {
	text := []byte(strings.TrimRight(everything, " "))
	for end := range text {
		if got, err := decoded(text[:end], false); !errors.Is(err, ErrUnparsable) {
			t.Errorf("%s: %q, %v", text[:end], got, err)
		}
	}
	spans := []reported{{
		low: 1, id: 2, duration: 3, name: "a", service: "s",
		tags: map[string]string{"http.route": "/"},
	}, {low: 1, id: 3, duration: 3}}
	complete, first := inProtobuf(spans), len(inProtobuf(spans[:1]))
	for end := range complete {
		isComplete := end == 0 || end == first
		if got, err := decoded(complete[:end], true); isComplete != (err == nil) || !isComplete &&
			!errors.Is(err, ErrUnparsable) {
			t.Errorf("%d bytes of %d: %q, %v", end, len(complete), got, err)
		}
	}
}

// TestBody_InvalidList decodes requests that are not valid lists of spans.
func TestBody_InvalidList(t *testing.T) {
	of := func(field string) string { return `[{"traceId":"1","id":"1","duration":1,` + field + `}]` }
	if got, err := decoded([]byte(of(`"x":1`)), false); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	for _, body := range []string{
		"", "{}", "null", "5", "[5]", "[[]]", "[{}]", "[null]", "[] []", `[{"traceId":"1","duration":1}]`,
		`[{"id":"1","duration":1}]`,
		`[{"traceId":"0","id":"1"}]`, `[{"traceId":"1","id":"0"}]`, `[{"traceId":null,"id":"1"}]`,
		of(`"id":"12345678901234567"`), of(`"traceId":"123456789012345678901234567890123"`), of(`"id":"xyz"`),
		of(`"id":""`), of(`"parentId":""`),
		of(`"kind":"server"`), of(`"kind":""`), of(`"kind":2`), of(`"timestamp":"soon"`),
		of(`"timestamp":1.5`), of(`"duration":{}`), of(`"name":{}`),
		of(`"name":true`), of(`"tags":[]`), of(`"tags":{"a":{}}`), of(`"tags":{"a":true}`),
		of(`"localEndpoint":"shop"`), of(`"localEndpoint":{"serviceName":[]}`),
		of(`"later":`), of(`"shared":tru`),
	} {
		if got, err := decoded([]byte(body), false); !errors.Is(err, ErrUnparsable) {
			t.Errorf("%s: %q, %v", body, got, err)
		}
	}
	for _, body := range [][]byte{
		{0},
		nested(nil, 1, nil),
		nested(nil, 1, nested(nested(nil, 1, bytes.Repeat([]byte{1}, 17)), 3, []byte{1})),
		nested(nil, 1, nested(nil, 3, []byte{1})),
	} {
		if got, err := decoded(body, true); !errors.Is(err, ErrUnparsable) {
			t.Errorf("%x: %q, %v", body, got, err)
		}
	}
}

// TestKind_Unknown checks that unknown kinds in protobuf, which future versions may
// add, are internal.
func TestKind_Unknown(t *testing.T) {
	body := inProtobuf([]reported{{low: 1, id: 1, duration: 1}})
	got, err := decoded(nested(nil, 1, append(body[2:], varint(nil, 4, 9)...)), true)
	if err != nil || len(got) != 1 || !strings.Contains(got[0], " internal ") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestTimes_AreClamped checks that times that are too large become the maximum, and negative ones
// 0.
func TestTimes_AreClamped(t *testing.T) {
	for micros, want := range map[uint64]uint64{
		0: 0, 7: 7000, 1<<63 - 1: (1<<63 - 1) / 1000 * 1000,
		1 << 63: 0, 1<<64 - 1: 0,
	} {
		if got := nanoseconds(micros); got != want {
			t.Errorf("%d microseconds are %d, want %d", micros, got, want)
		}
	}
}

// TestDecoder_Bounds checks that requests that exceed the limits of the table are rejected in both
// encodings.
func TestDecoder_Bounds(t *testing.T) {
	one, other := reported{low: 1, id: 1, duration: 1, service: "a"}, reported{
		low: 1, id: 1, duration: 1,
		service: "b",
	}
	for name, pair := range map[string][]reported{"spans": {one, one}, "senders": {one, other}} {
		text, list := inJSON(pair), inProtobuf(pair)
		text = append(text[1:len(text)-1], ',')
		for n, isRead := range map[int]bool{50: true, 35_000: false} {
			all := append([]byte{'['}, bytes.Repeat(text, n)...)
			all[len(all)-1] = ']'
			for isProtobuf, body := range map[bool][]byte{false: all, true: bytes.Repeat(list, n)} {
				if _, err := decoded(body, isProtobuf); isRead != (err == nil) || !isRead &&
					!errors.Is(err, spantable.ErrTooMuch) {
					t.Errorf("%d %s, protobuf %v: %v", 2*n, name, isProtobuf, err)
				}
			}
		}
	}
}

// TestDecoder_AllocatesNothing checks that decoding does not allocate after the first
// request.
func TestDecoder_AllocatesNothing(t *testing.T) {
	var d Decoder
	var r otlp.Request
	spans := randomSpans(rand.New(rand.NewPCG(5, 5)))
	text, list := inJSON(spans), inProtobuf(spans)
	if n := testing.AllocsPerRun(100, func() {
		if d.JSON(&r, text, ofSpans, ofResources) != nil ||
			d.Protobuf(&r, list, ofSpans, ofResources) != nil {
			t.Error("it is not read")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// isSound checks that decoding does not panic, and that only valid JSON is accepted.
func isSound(t *testing.T, body []byte, isProtobuf bool) {
	t.Helper()
	got, err := decoded(body, isProtobuf)
	if isJSON := isProtobuf || json.Valid(body); err == nil && !isJSON {
		t.Errorf("%q is no JSON, and is read as %q", body, got)
	}
}

// FuzzJSON checks arbitrary input as JSON.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(everything))
	for seed := range uint64(20) {
		f.Add(inJSON(randomSpans(rand.New(rand.NewPCG(seed, 34)))))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) < 5000 { // encoding/json limits nesting to 10000 levels
			isSound(t, body, false)
		}
	})
}

// FuzzProtobuf checks arbitrary input as protobuf.
func FuzzProtobuf(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(inProtobuf(randomSpans(rand.New(rand.NewPCG(seed, 35)))))
	}
	f.Fuzz(func(t *testing.T, body []byte) { isSound(t, body, true) })
}

// TestDuration_ZeroCounts checks that a span with duration 0 counts, and one without
// a duration does not.
func TestDuration_ZeroCounts(t *testing.T) {
	one := inProtobuf([]reported{{low: 1, id: 1}})
	_, begin := protowire.ConsumeVarint(one[1:]) // after the tag and the length
	for isProtobuf, body := range map[bool][]byte{
		false: []byte(`[{"traceId":"1","id":"1","duration":0},{"traceId":"1","id":"2"}]`),
		true: append(nested(nil, 1, varint(one[1+begin:], 7, 0)),
			inProtobuf([]reported{{low: 1, id: 2}})...),
	} {
		got, err := decoded(body, isProtobuf)
		if want := []string{`00000000000000001/1<0 "" internal 0+1000 0 state=""`}; err != nil ||
			!slices.Equal(got, want) {
			t.Errorf("in protobuf %t: %q, %v", isProtobuf, got, err)
		}
	}
}
