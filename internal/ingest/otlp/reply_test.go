package otlp

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// TestResponse_GoldenBytes compares every part of the responses with golden bytes.
func TestResponse_GoldenBytes(t *testing.T) {
	partial := &reply{responseBody: nested(nil, 1, nested([]byte{8, 3}, 2, []byte("too old")))}
	busy := &reply{Status: otlpanswer.Status{
		Code: otlpanswer.Unavailable, Message: "busy",
		Retry: 1500 * time.Millisecond,
	}}
	bad := newRefusal(ResultUnparsable, otlpanswer.InvalidArgument, "100% bad: é")
	for _, c := range []struct {
		name     string
		answer   *reply
		encoding encoding
		status   int
		retry    string
		body     string // hexadecimal, except for JSON
	}{
		{"accepted", successReply(), encodingProtobuf, 200, "", ""},
		{"accepted", successReply(), encodingJSON, 200, "", `{}`},
		{"partly accepted", partial, encodingProtobuf, 200, "", "0a0b08031207746f6f206f6c64"},
		{
			"partly accepted", partial, encodingJSON, 200, "",
			`{"partialSuccess":{"errorMessage":"too old","rejectedSpans":"3"}}`,
		},
		{
			"busy", busy, encodingProtobuf, 503, "2",
			"080e1204627573791a360a28747970652e676f6f676c65617069732e636f6d2f676f6f676c652e7270632e5265747279496e666f120a0a0808011080cab5ee01",
		},
		{
			"busy", busy, encodingJSON, 503, "2",
			`{"code":14,"message":"busy","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}]}`,
		},
		{"bad", bad, encodingProtobuf, 400, "", "0803120c31303025206261643a20c3a9"},
		{"bad", bad, encodingJSON, 400, "", `{"code":3,"message":"100% bad: é"}`},
	} {
		w := httptest.NewRecorder()
		if err := c.answer.writeHTTP(w, c.encoding, signalTraces); err != nil {
			t.Fatal(err)
		}
		body := w.Body.String()
		if c.encoding == encodingProtobuf {
			body = hex.EncodeToString(w.Body.Bytes())
		}
		if w.Code != c.status || body != c.body || w.Header().Get("Retry-After") != c.retry ||
			w.Header().Get("Content-Type") != mediaOf[c.encoding] {
			t.Errorf("%s, encoding %d: %d %s\n%v", c.name, c.encoding, w.Code, body, w.Header())
		}
	}
	for _, c := range []struct {
		answer                         *reply
		body, status, message, details string
	}{
		{successReply(), "0000000000", "0", "", ""},
		{partial, "000000000d0a0b08031207746f6f206f6c64", "0", "", ""},
		{
			busy, "", "14", "busy",
			"CA4SBGJ1c3kaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIARCAyrXuAQ",
		},
		{bad, "", "3", "100%25%20bad:%20%C3%A9", "CAMSDDEwMCUgYmFkOiDDqQ"},
	} {
		w := httptest.NewRecorder()
		if err := c.answer.writeGRPC(w, false); err != nil {
			t.Fatal(err)
		}
		h := w.Header()
		if got := hex.EncodeToString(w.Body.Bytes()); w.Code != http.StatusOK || got != c.body ||
			h.Get(headerGRPCStatus) != c.status ||
			h.Get(headerGRPCMessage) != c.message || h.Get(headerGRPCDetails) != c.details {
			t.Errorf("status %s: %s\n%v", c.status, got, h)
		}
	}
}
