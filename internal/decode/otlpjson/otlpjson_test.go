package otlpjson

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/decode/jsonscan"
	"google.golang.org/protobuf/encoding/protowire"
)

// exampleJSON is a request like those of browser SDKs, in all notations that the encoding allows.
const exampleJSON = `{
	"resourceSpans": [{
		"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}], "droppedAttributesCount": 0},
		"scopeSpans": [{
			"scope": {"name": "tracer", "version": null, "attributes": []},
			"spans": [{
				"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "eee19b7ec3c1b174", "parentSpanId": "", "traceState": "ot=th:8",
				"name": "a \u00e9", "kind": 2, "startTimeUnixNano": "1544712660000000000", "endTimeUnixNano": 1544712661000000000,
				"attributes": [
					{"key": "http.response.status_code", "value": {"intValue": "200"}},
					{"key": "i", "value": {"intValue": -5}},
					{"key": "d", "value": {"doubleValue": 1.5}},
					{"key": "inf", "value": {"doubleValue": "-Infinity"}},
					{"key": "b", "value": {"boolValue": true}},
					{"key": "bytes", "value": {"bytesValue": "AQI="}},
					{"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "x"}, {"kvlistValue": {"values": [{"key": "k", "value": {}}]}}]}}}
				],
				"droppedAttributesCount": 1, "flags": 257,
				"events": [{"timeUnixNano": "7", "name": "e", "attributes": [], "droppedAttributesCount": 2, "later": {"x": [[1], {"y": null}]}}], "droppedEventsCount": 3,
				"links": [{"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "traceState": "", "flags": 1}], "droppedLinksCount": 4,
				"status": {"message": "m", "code": 2}, "unknown": [1, 2, {"a": "b"}]
			}],
			"schemaUrl": "u"
		}]
	}]
}`

// submessage appends a field that contains a message or a string.
func submessage(b []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), content)
}

// TestJSON_MatchesProtobuf compares the result for exampleJSON with hand-written protobuf.
func TestJSON_MatchesProtobuf(t *testing.T) {
	tag := func(b []byte, number protowire.Number, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), n)
	}
	fixed := func(b []byte, number protowire.Number, n uint64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), n)
	}
	pair := func(b []byte, name string, value []byte) []byte {
		return submessage(b, 9, submessage(submessage(nil, 1, []byte(name)), 2, value))
	}
	text := func(s string) []byte { return submessage(nil, 1, []byte(s)) }
	id := []byte("\x5b\x8e\xff\xf7\x98\x03\x81\x03\xd2\x69\xb6\x33\x81\x3f\xc6\x0c")
	spanID := []byte("\xee\xe1\x9b\x7e\xc3\xc1\xb1\x74")
	span := submessage(submessage(nil, 1, id), 2, spanID)
	span = submessage(submessage(submessage(span, 4, nil), 3, []byte("ot=th:8")), 5, []byte("a é"))
	span = fixed(fixed(tag(span, 6, 2), 7, 1544712660000000000), 8, 1544712661000000000)
	span = pair(span, "http.response.status_code", tag(nil, 3, 200))
	span = pair(span, "i", tag(nil, 3, 1<<64-5))
	span = pair(span, "d", fixed(nil, 4, 0x3ff8<<48))
	span = pair(span, "inf", fixed(nil, 4, 0xfff<<52))
	span = pair(span, "b", tag(nil, 2, 1))
	span = pair(span, "bytes", submessage(nil, 7, []byte{1, 2}))
	span = pair(span, "list", submessage(nil, 5, submessage(submessage(nil, 1, text("x")), 1,
		submessage(nil, 6, submessage(nil, 1, submessage(text("k"), 2, nil))))))
	span = protowire.AppendFixed32(protowire.AppendTag(tag(span, 10, 1), 16, protowire.Fixed32Type), 257)
	span = tag(submessage(span, 11, tag(submessage(fixed(nil, 1, 7), 2, []byte("e")), 4, 2)), 12, 3)
	link := submessage(submessage(submessage(nil, 1, id), 2, spanID), 3, nil)
	link = protowire.AppendFixed32(protowire.AppendTag(link, 6, protowire.Fixed32Type), 1)
	span = tag(submessage(span, 13, link), 14, 4)
	span = submessage(span, 15, tag(submessage(nil, 2, []byte("m")), 3, 2))
	scope := submessage(submessage(submessage(nil, 1, text("tracer")), 2, span), 3, []byte("u"))
	resource := tag(submessage(nil, 1, submessage(text("service.name"), 2, text("shop"))), 2, 0)
	want := submessage(nil, 1, submessage(submessage(nil, 1, resource), 2, scope))

	got, err := FromJSON([]byte("before"), []byte(exampleJSON))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, append([]byte("before"), want...)) {
		t.Errorf("%q, want\n%q", got, want)
	}
}

// TestNumbers_EachNotation checks valid and invalid notations of numbers.
func TestNumbers_EachNotation(t *testing.T) {
	const noInteger = `1.8446744073709551615e1`
	for text, want := range map[string]uint64{
		`5`:                    5,
		`007`:                  7,
		`+5`:                   5,
		`5.0`:                  5,
		`5e3`:                  5000,
		noInteger:              0,
		`18446744073709551615`: 1<<64 - 1,
		`9999999999999999999`:  9999999999999999999,
		`-1`:                   1<<64 - 1,
		`-0`:                   0,
		`-3.0`:                 1<<64 - 3,
		`-9223372036854775808`: 1 << 63,
		`0x10p0`:               16,
	} {
		got, ok := jsonscan.ParseInteger([]byte(text))
		if got != want || ok != (text != noInteger) {
			t.Errorf("%s is %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		``, `-`, `x`, `5x`, `--5`, `1e30`, `NaN`, `0.5`, `18446744073709551616`,
		`-9223372036854775809`, `99999999999999999999`,
	} {
		if n, ok := jsonscan.ParseInteger([]byte(text)); ok {
			t.Errorf("%s is %d", text, n)
		}
	}
}

// TestJSON_InvalidIsRefused checks that invalid requests cause an error and leave dst
// unchanged.
func TestJSON_InvalidIsRefused(t *testing.T) {
	span := func(fields string) string {
		return `{"resourceSpans":[{"scopeSpans":[{"spans":[{` + fields + `}]}]}]}`
	}
	deep := func(open, shut string, n int) string { return strings.Repeat(open, n) + strings.Repeat(shut, n) }
	for _, text := range []string{
		``, `[]`, `null`, `5`, `{`, `{} {}`, `{}]`, `{"resourceSpans":5}`, `{"resourceSpans":[5]}`,
		`{"resourceSpans":[[{}]]}`, `{"a":}`,
		span(`"traceId":"5b8"`), span(`"endTimeUnixNano":[1,2]`), span(`"traceId":["00"]`),
		span(`"traceId":"xy"`), span(`"traceId":5`), span(`"kind":"SPAN_KIND_SERVER"`), span(`"kind":true`),
		span(`"kind":{}`), span(`"startTimeUnixNano":"soon"`),
		span(`"attributes":[{"value":{"boolValue":1}}]`), span(`"attributes":[{"value":{"bytesValue":"?"}}]`),
		span(`"attributes":[{"value":{"doubleValue":"?"}}]`),
		span(`"name":{}`), span(`"later":` + deep("[", "]", 20) + `]`),
		span(`"later":` + deep("[", "]", 1000) + `]`),
		span(`"attributes":[{"value":` + deep(`{"arrayValue":{"values":[`, `]}}`, 1000) + `,1}]`),
	} {
		if got, err := FromJSON([]byte("x"), []byte(text)); err == nil || string(got) != "x" {
			t.Errorf("%s was read as %q", text, got)
		}
	}
	if got, err := FromJSON(nil, []byte(` { "resourceSpans" : null , "x" : {"y":[]} } `)); err != nil ||
		len(got) != 0 {
		t.Errorf("%q, %v", got, err)
	}
}

// TestNesting_DeepIsSkipped checks that deeply nested values are skipped without additional
// memory.
func TestNesting_DeepIsSkipped(t *testing.T) {
	for _, around := range [][2]string{
		{`{"resourceSpans":{"later":`, `}}`},
		{`{"resourceSpans":{"resource":{"attributes":{"value":`, `}}}}`},
	} {
		for _, deep := range [][2]string{
			{`{"arrayValue":{"values":[`, `]}}`},
			{`{"kvlistValue":{"values":[{"value":`, `}]}}`},
			{`{"x":[{"y":`, `}]}`},
		} {
			for _, depth := range []int{20, 50, 1000, 200_000} {
				body := []byte(around[0] + strings.Repeat(deep[0], depth) + "{}" +
					strings.Repeat(deep[1], depth) + around[1])
				room := make([]byte, 0, ProtobufBytes(len(body)))
				written, err := FromJSON(room, body)
				if err != nil || &written[:1][0] != &room[:1][0] {
					t.Errorf("%d times %s: %v, %d bytes of %d", depth, deep[0], err, len(written), cap(room))
				}
				if depth <= 1000 {
					isReadAsTheModelReadsIt(t, body)
				}
				// Replace the last bracket by the other kind.
				body[len(body)-len(around[1])-1] = ']' + '}' - body[len(body)-len(around[1])-1]
				if _, err := FromJSON(room, body); err == nil {
					t.Errorf("%d times %s: a wrong end is accepted", depth, deep[0])
				}
			}
		}
	}
}

// TestProtobufBytes_EachField checks ProtobufBytes for each field, with its shortest JSON
// values.
func TestProtobufBytes_EachField(t *testing.T) {
	longest := map[encoding][]string{
		asVarint64: {"-1", `"-1"`, "9e18"}, asVarint32: {"-1", `"-1"`, "-1e9", "4294967295", "9e18"},
		asFixed64: {"1"}, asFixed32: {"1"}, asDouble: {"1"}, asBool: {"true"},
		asString: {`""`, `["",""]`}, asHex: {`""`}, asBase64: {`""`}, asMessage: {"{}", "[{},{}]"},
	}
	for _, fields := range []messageFields{
		requestFields, resourceSpansFields, resourceFields, entityFields, scopeSpansFields, scopeFields,
		spanFields,
		statusFields, linkFields, eventFields, keyValueListFields, arrayFields, attributeFields, valueFields,
	} {
		for _, f := range fields {
			for _, value := range longest[f.encoding] {
				const n = 100
				body := []byte("{" + strings.Repeat(`"`+f.name+`":`+value+",", n-1) + `"` + f.name + `":` +
					value + "}")
				c := converter{Scanner: jsonscan.Scanner{Body: body}}
				if c.convertMessage(fields, 0); c.Err() != nil || len(c.out) > len(body) {
					t.Errorf("%d bytes of %s: %s become %d", len(body), f.name, value, len(c.out))
				}
			}
		}
	}
}

// FuzzFromJSON compares FromJSON with the model, and checks the length of its result.
func FuzzFromJSON(f *testing.F) {
	f.Add([]byte(exampleJSON))
	f.Add([]byte(`{"resourceSpans":[{"resource":{"attributes":[{"key":"k","value":{"stringValue":"v"}},{"key":"n","value":{"intValue":"7"}}]}}]}`))
	f.Add([]byte(`{"resourceSpans":[{"resource":{},"scopeSpans":[{"spans":[{"name":null,"kind":"3","attributes":{"key":"x"}}]}]}]}`))
	f.Add([]byte(`{"resourceSpans":{"schemaUrl":"\ud83d\ude00\ud83d\/\n","r\u0065source":{"entityRefs":[{"idKeys":["a","\"",""]}]}}}`))
	f.Fuzz(func(t *testing.T, body []byte) { isReadAsTheModelReadsIt(t, body) })
}
