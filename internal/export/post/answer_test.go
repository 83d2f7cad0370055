package post

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// statusBody returns an encoded google.rpc.Status with a message and a RetryInfo.
func statusBody(text string, retry time.Duration) string {
	return string(otlpanswer.Status{Code: otlpanswer.Unavailable, Message: text, Retry: retry}.Protobuf())
}

// TestResponse_Outcomes tests the meaning of status codes, the message in the body, and the
// requested delay.
func TestResponse_Outcomes(t *testing.T) {
	table := Answers{
		404: {Outcome: export.OutcomeNotWanted}, 429: {export.OutcomeNotYet, " (later)"},
		5:   {Outcome: export.OutcomeNotYet},
		501: {Outcome: export.OutcomeRefused},
		200: {Outcome: export.OutcomeRefused},
	}
	const proto = "application/x-protobuf"
	for name, test := range map[string]struct {
		code       int
		kind, body string
		retry      string
		want       export.Outcome
		after      time.Duration
		err        string
	}{
		"a success":                     {code: 200, body: "x", want: export.OutcomeAccepted},
		"another success, with a delay": {code: 202, retry: "7", want: export.OutcomeAccepted},
		"redirect": {
			code: 307, want: export.OutcomeRefused,
			err: "upstream answered 307 Temporary Redirect",
		},
		"a status without a row": {
			code: 400, body: " no\n", retry: "7", want: export.OutcomeRefused,
			err: `upstream answered 400 Bad Request: "no"`,
		},
		"status with a row": {
			code: 404, want: export.OutcomeNotWanted,
			err: "upstream answered 404 Not Found",
		},
		"delay and advice": {
			code: 429, retry: "7", want: export.OutcomeNotYet,
			after: 7 * time.Second, err: "upstream answered 429 Too Many Requests (later)",
		},
		"status of a class": {
			code: 502, want: export.OutcomeNotYet,
			err: "upstream answered 502 Bad Gateway",
		},
		"status with its own row": {
			code: 501, want: export.OutcomeRefused,
			err: "upstream answered 501 Not Implemented",
		},
		"body that is not text": {
			code: 400, body: "\xff\xfe", want: export.OutcomeRefused,
			err: "upstream answered 400 Bad Request",
		},
		"delay in a status": {
			code: 503, kind: proto, body: statusBody("busy", 3500*time.Millisecond),
			want:  export.OutcomeNotYet,
			after: 3500 * time.Millisecond,
			err:   `upstream answered 503 Service Unavailable: "busy"`,
		},
		"the longer of two delays": {
			code: 503, kind: proto, retry: "5", body: statusBody("", 3*time.Second),
			want: export.OutcomeNotYet, after: 5 * time.Second, err: "upstream answered 503 Service Unavailable",
		},
		"status with another content type": {
			code: 503, kind: "text/plain", body: statusBody("\xff", 3*time.Second),
			want: export.OutcomeNotYet, err: "upstream answered 503 Service Unavailable",
		},
		"delay of a permanent error": {
			code: 400, kind: proto, body: statusBody("no", 3*time.Second),
			want: export.OutcomeRefused, err: `upstream answered 400 Bad Request: "no"`,
		},
	} {
		resp := &http.Response{
			StatusCode: test.code,
			Status: strings.TrimSpace(strings.Join([]string{itoa(test.code), http.StatusText(test.code)},
				" ")),
			Header: http.Header{"Content-Type": {test.kind}, "Retry-After": {test.retry}},
			Body:   io.NopCloser(strings.NewReader(test.body)),
		}
		a := table.readAnswer("upstream", resp, maxRead, time.Now())
		if a.Outcome != test.want || a.After != test.after || a.Silent || a.Code != test.code ||
			string(a.Body) != test.body {
			t.Errorf("%s: %+v, want outcome %d, retry after %s", name, a, test.want, test.after)
		}
		if (a.Err == nil) != (test.err == "") || a.Err != nil && a.Err.Error() != test.err {
			t.Errorf("%s: error %v, want %s", name, a.Err, test.err)
		}
	}
}

func itoa(n int) string {
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

// TestResponse_LongIsBounded expects limits for the bytes read and shown.
func TestResponse_LongIsBounded(t *testing.T) {
	read := 0
	body := &endless{read: &read}
	a := Answers{}.readAnswer("upstream", &http.Response{StatusCode: 400, Header: http.Header{}, Body: body}, maxRead,
		time.Now())
	if read > maxRead || len(a.Err.Error()) > 2*maxMessage || len(a.Message) > maxMessage {
		t.Errorf("%d bytes were read, and %d are in the error", read, len(a.Err.Error()))
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
