package otlpanswer_test

import (
	"encoding/hex"
	"testing"
	"time"

	. "github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
	"google.golang.org/protobuf/encoding/protowire"
)

func text(to []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), value)
}

func number(to []byte, field protowire.Number, value int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), uint64(value))
}

// rpcStatus is a google.rpc.Status with a message, a RetryInfo and a detail of another type.
func rpcStatus(message string, seconds, nanos int64) []byte {
	detail := func(kind string, delay []byte) []byte {
		return text(text(nil, 1, []byte("type.googleapis.com/google.rpc."+kind)), 2, text(nil, 1, delay))
	}
	s := text(number(nil, 1, 14), 2, []byte(message))
	s = text(s, 3, detail("RetryInfo", number(number(nil, 1, seconds), 2, nanos)))
	return text(s, 3, detail("Help", number(nil, 1, 50)))
}

func TestRetryAfter_Forms(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "100000": MaxRetryAfter, "-5": 0, "soon": 0,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0,
		"Fri, 02 Jan 2099 03:04:00 GMT": MaxRetryAfter,
	} {
		if got := RetryAfter(header, now); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

// ReadStatus reads any status, and ignores fields that it cannot parse.
func TestStatus_Read(t *testing.T) {
	for name, c := range map[string]struct {
		status []byte
		want   Status
	}{
		"nothing": {nil, Status{}},
		"a wait": {
			rpcStatus("busy", 3, 5e8),
			Status{Unavailable, "busy", 3500 * time.Millisecond},
		},
		"a wait in the past": {rpcStatus("", -3, 0), Status{Code: Unavailable}},
		"an absurd wait":     {rpcStatus("", 1<<62, 1<<62), Status{Code: Unavailable, Retry: MaxRetryAfter}},
		"another detail": {text(nil, 3,
			text(text(nil, 1, []byte("x/google.rpc.Help")), 2, text(nil, 1, number(nil, 1, 50)))), Status{}},
		"an unknown code": {number(nil, 1, 1<<40), Status{Code: Unauthenticated + 1}},
		"no protobuf":     {[]byte{0xff, 0xff}, Status{}},
	} {
		if got := ReadStatus(c.status); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// The expected bytes were encoded with protobuf's own library.
func TestStatus_Written(t *testing.T) {
	for _, c := range []struct {
		status         Status
		protobuf, json string
		field          string
	}{
		{Status{}, "", "{}", "0"},
		{
			Status{Unavailable, "busy", 1500 * time.Millisecond},
			"080e1204627573791a360a28747970652e676f6f676c65617069732e636f6d2f676f6f676c652e7270632e5265747279496e666f120a0a0808011080cab5ee01",
			`{"code":14,"message":"busy","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}]}`, "2",
		},
		{
			Status{Code: InvalidArgument, Message: "100% bad: é"},
			"0803120c31303025206261643a20c3a9",
			`{"code":3,"message":"100% bad: é"}`, "0",
		},
	} {
		b := c.status.Protobuf()
		if got := hex.EncodeToString(b); got != c.protobuf || string(c.status.JSON()) != c.json ||
			c.status.RetryAfter() != c.field {
			t.Errorf("%+v: %s\n%s\n%s", c.status, got, c.status.JSON(), c.status.RetryAfter())
		}
		if got := ReadStatus(b); got != c.status {
			t.Errorf("%+v is read as %+v", c.status, got)
		}
	}
}

// A gRPC code is retryable if and only if its HTTP status is.
func TestCodes_SameRetryAsHTTP(t *testing.T) {
	byHTTP := map[int]bool{429: true, 502: true, 503: true, 504: true}
	byGRPC := map[Code]bool{
		Canceled: true, DeadlineExceeded: true, Aborted: true, OutOfRange: true,
		Unavailable: true, DataLoss: true,
	}
	for c := OK; c <= Unauthenticated+1; c++ {
		for _, retry := range []time.Duration{0, 1} {
			s := Status{Code: c, Retry: retry}
			want := byGRPC[c] || c == ResourceExhausted && retry > 0
			if s.IsRetryable() != want || byHTTP[s.HTTP()] != want || (s.HTTP() == 200) != (c == OK) {
				t.Errorf("%+v is %d and retryable: %v, want %v", s, s.HTTP(), s.IsRetryable(), want)
			}
		}
	}
	for status := 200; status < 600; status++ {
		s := Status{Code: CodeOf(status)}
		if s.IsRetryable() != byHTTP[status] || (s.Code == OK) != (status < 300) {
			t.Errorf("status %d is %+v", status, s)
		}
	}
}

// A message is not read as a number, and a negative number is read as 0.
func TestPartialSuccess_Read(t *testing.T) {
	response := protowire.AppendFixed32(protowire.AppendTag(nil, 1, protowire.Fixed32Type), 7)
	response = text(response, 1, text(number(nil, 1, 3), 2, []byte("x")))
	if p := ReadPartial(response); p != (Partial{3, "x"}) {
		t.Errorf("%+v", p)
	}
	if p := ReadPartial(text(nil, 1, number(nil, 1, -3))); p != (Partial{}) {
		t.Errorf("%+v", p)
	}
	for want, p := range map[string]Partial{
		"{}": {}, `{"partialSuccess":{"errorMessage":"x"}}`: {0, "x"},
		`{"partialSuccess":{"errorMessage":"x","rejectedSpans":"3"}}`: {3, "x"},
	} {
		if got := string(p.JSON("rejectedSpans")); got != want {
			t.Errorf("%+v: %s, want %s", p, got, want)
		}
	}
}

// No response is read beyond its end or takes long to read, and every result can be encoded in JSON.
func FuzzAnswers(f *testing.F) {
	f.Add(rpcStatus("busy", 3, 5))
	f.Add(text(nil, 1, text(number(nil, 1, 3), 2, []byte("too old"))))
	f.Fuzz(func(t *testing.T, answer []byte) {
		s := ReadStatus(answer)
		if s.Retry < 0 || s.Retry > MaxRetryAfter || s.JSON()[0] != '{' {
			t.Errorf("%x is %+v", answer, s)
		}
		if got := ReadStatus(s.Protobuf()); got != s {
			t.Errorf("%+v is written as %+v", s, got)
		}
		if p := ReadPartial(answer); p.JSON("x")[0] != '{' {
			t.Errorf("%x is %+v", answer, p)
		}
	})
}
