package otlp

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlpjson"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// FuzzJSONStaysInItsRoom checks that the protobuf of a JSON request fits into the memory reserved for it.
func FuzzJSONStaysInItsRoom(f *testing.F) {
	for _, seed := range []string{
		inJSONText, "{}", `{"resourceSpans":[{},{},{}]}`,
		`{"resourceSpans":[{"resource":{"attributes":[{},{"key":"a","value":{"doubleValue":1}}]}}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":2,"status":{"code":2},"links":[{}],"events":[{"timeUnixNano":1}],"startTimeUnixNano":1}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"` + "\u00e9\U0001F600" +
			`\ud800\u00ff","flags":4294967295,"parentSpanId":""}]}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		body = bytes.ToValidUTF8(body, []byte("?")) // invalid UTF-8 is refused earlier
		room := otlpjson.ProtobufBytes(len(body))
		if written, err := otlpjson.FromJSON(make([]byte, 0, room), body); err == nil && len(written) > room {
			t.Errorf("%d bytes of JSON become %d", len(body), len(written))
		}
	})
}

// TestJSON_CountedAndResponded also checks that invalid JSON is refused with a response in JSON.
func TestJSON_CountedAndResponded(t *testing.T) {
	h := newHarness(t, nil)
	client := h.client(false)
	send := func(body string, header ...string) answered {
		return send(t, client, http.MethodPost, "/v1/traces", strings.NewReader(body),
			append([]string{"Content-Type", "application/json; charset=utf-8"}, header...)...)
	}
	if a := send(inJSONText); a.status != http.StatusOK || string(a.body) != "{}" ||
		a.header.Get("Content-Type") != mediaJSON {
		t.Errorf("answered %+v", a)
	}
	if a := send(string(packed([]byte(strings.ReplaceAll(inJSONText, "b7ad", "b7ae")))), "Content-Encoding",
		"gzip"); a.status != http.StatusOK {
		t.Errorf("answered %+v", a)
	}
	for _, bad := range []string{
		"", "[]", "{", inJSONText + "x",
		strings.ReplaceAll(inJSONText, "from", "\xff"),
	} {
		if a := send(bad); a.status != http.StatusBadRequest || statusIn(a) != otlpanswer.InvalidArgument ||
			!bytes.Contains(a.body, []byte("JSON")) {
			t.Errorf("%.20q: answered %+v", bad, a)
		}
	}
	h.stop()
	if h.rows["from JSON"] != 2 || h.Stats().Requests["unparsable"] != 5 {
		t.Errorf("counted %v, requests %v", h.rows, h.Stats().Requests)
	}
}
