package post

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestRetryAfterForms(t *testing.T) {
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

// rpcStatus is a google.rpc.Status with a message, a RetryInfo and a detail of another type.
func rpcStatus(said string, seconds, nanos int64) []byte {
	number := func(b []byte, field protowire.Number, n int64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n))
	}
	bytes := func(b []byte, field protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
	}
	detail := func(kind string, delay []byte) []byte {
		any := bytes(nil, fieldTypeURL, []byte("type.googleapis.com/google.rpc."+kind))
		return bytes(any, fieldAny, bytes(nil, fieldRetryDelay, delay))
	}
	s := bytes(number(nil, 1, 14), fieldMessage, []byte(said))
	s = bytes(s, fieldDetails, detail("RetryInfo", number(number(nil, fieldSeconds, seconds), fieldNanos, nanos)))
	return bytes(s, fieldDetails, detail("Help", number(nil, fieldSeconds, 50)))
}

// TestWhatAnAnswerMeans: by the table, by what stands in it, and how long it is waited.
func TestWhatAnAnswerMeans(t *testing.T) {
	table := Answers{
		404: {Outcome: flush.OutcomeNotWanted}, 429: {flush.OutcomeNotYet, " (later)"},
		5: {Outcome: flush.OutcomeNotYet}, 501: {Outcome: flush.OutcomeRefused}, 200: {Outcome: flush.OutcomeRefused},
	}
	const proto = "application/x-protobuf"
	for name, test := range map[string]struct {
		code       int
		kind, body string
		retry      string
		want       flush.Outcome
		after      time.Duration
		err        string
	}{
		"a success":                  {code: 200, body: "x", want: flush.OutcomeAccepted},
		"another, with a wait":       {code: 202, retry: "7", want: flush.OutcomeAccepted},
		"a redirection":              {code: 307, want: flush.OutcomeRefused, err: "who answered 307 Temporary Redirect"},
		"a status without a row":     {code: 400, body: " no\n", retry: "7", want: flush.OutcomeRefused, err: `who answered 400 Bad Request: "no"`},
		"one with a row":             {code: 404, want: flush.OutcomeNotWanted, err: "who answered 404 Not Found"},
		"a wait and advice":          {code: 429, retry: "7", want: flush.OutcomeNotYet, after: 7 * time.Second, err: "who answered 429 Too Many Requests (later)"},
		"a status of a class":        {code: 502, want: flush.OutcomeNotYet, err: "who answered 502 Bad Gateway"},
		"one with a row of its own":  {code: 501, want: flush.OutcomeRefused, err: "who answered 501 Not Implemented"},
		"what is no text":            {code: 400, body: "\xff\xfe", want: flush.OutcomeRefused, err: "who answered 400 Bad Request"},
		"a wait in a status":         {code: 503, kind: proto, body: string(rpcStatus("busy", 3, 5e8)), want: flush.OutcomeNotYet, after: 3500 * time.Millisecond, err: `who answered 503 Service Unavailable: "busy"`},
		"the longer of two waits":    {code: 503, kind: proto, retry: "5", body: string(rpcStatus("", 3, 0)), want: flush.OutcomeNotYet, after: 5 * time.Second, err: "who answered 503 Service Unavailable"},
		"a wait in the past":         {code: 503, kind: proto, body: string(rpcStatus("", -3, 0)), want: flush.OutcomeNotYet, err: "who answered 503 Service Unavailable"},
		"an absurd wait":             {code: 503, kind: proto, body: string(rpcStatus("", 1<<62, 1<<62)), want: flush.OutcomeNotYet, after: MaxRetryAfter, err: "who answered 503 Service Unavailable"},
		"a status of another type":   {code: 503, kind: "text/plain", body: string(rpcStatus("\xff", 3, 0)), want: flush.OutcomeNotYet, err: "who answered 503 Service Unavailable"},
		"a status that is not taken": {code: 400, kind: proto, body: string(rpcStatus("no", 3, 0)), want: flush.OutcomeRefused, err: `who answered 400 Bad Request: "no"`},
	} {
		resp := &http.Response{
			StatusCode: test.code, Status: strings.TrimSpace(strings.Join([]string{itoa(test.code), http.StatusText(test.code)}, " ")),
			Header: http.Header{"Content-Type": {test.kind}, "Retry-After": {test.retry}},
			Body:   io.NopCloser(strings.NewReader(test.body)),
		}
		a := table.read("who", resp, maxRead, time.Now())
		if a.Outcome != test.want || a.After != test.after || a.Silent || a.Code != test.code || string(a.Body) != test.body {
			t.Errorf("%s: %+v, want outcome %d, another try after %s", name, a, test.want, test.after)
		}
		if (a.Err == nil) != (test.err == "") || a.Err != nil && a.Err.Error() != test.err {
			t.Errorf("%s: error %v, want %s", name, a.Err, test.err)
		}
	}
}

func itoa(n int) string {
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

// TestALongAnswerCostsLittle: no more of it is read than it may be, nor said than maxSaid.
func TestALongAnswerCostsLittle(t *testing.T) {
	read := 0
	body := &endless{read: &read}
	a := Answers{}.read("who", &http.Response{StatusCode: 400, Header: http.Header{}, Body: body}, maxRead, time.Now())
	if read > maxRead || len(a.Err.Error()) > 2*maxSaid || len(a.Said) > maxSaid {
		t.Errorf("%d bytes were read, and %d are said", read, len(a.Err.Error()))
	}
}

type endless struct{ read *int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	*e.read += len(p)
	return len(p), nil
}

func (*endless) Close() error { return nil }

// FuzzStatus: nothing that a destination can send is read beyond its end, or takes long.
func FuzzStatus(f *testing.F) {
	f.Add(rpcStatus("busy", 3, 5))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if _, wait := ReadStatus(answer); wait < 0 || wait > MaxRetryAfter {
			t.Errorf("a wait of %s", wait)
		}
	})
}
