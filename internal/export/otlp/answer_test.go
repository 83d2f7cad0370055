package otlp

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

func partialBody(rejected int64, message string) []byte {
	return protolite.AppendBytes(nil, 1, protolite.AppendBytes(protolite.AppendVarint(nil, 1, uint64(rejected)), 2, message))
}

// TestResponse_Outcomes tests each row of the table in docs/otlp-metrics.md over a real socket.
func TestResponse_Outcomes(t *testing.T) {
	for name, test := range map[string]struct {
		status   int
		header   map[string]string
		body     string
		want     export.Outcome
		rejected uint64
		after    time.Duration
		err      string
	}{
		"accepted": {status: 200, want: export.OutcomeAccepted},
		"accepted, with a message": {
			status: 200, body: string(partialBody(0, "a warning")),
			want: export.OutcomeAccepted, err: `"a warning"`,
		},
		"accepted, with an empty partial success": {
			status: 200, body: string(partialBody(0, "")),
			want: export.OutcomeAccepted,
		},
		"accepted with another status": {status: 202, want: export.OutcomeAccepted},
		"one point rejected": {
			status: 200, body: string(partialBody(1, "too old")),
			want: export.OutcomeAccepted, rejected: 5, err: `1 data points of a payload: "too old"`,
		},
		"two points rejected": {
			status: 200, body: string(partialBody(2, "")),
			want: export.OutcomeAccepted, rejected: 8, err: "2 data points",
		},
		"all points rejected": {
			status: 200, body: string(partialBody(99, "")),
			want: export.OutcomeAccepted, rejected: 10, err: "99 data points",
		},
		"an impossible number rejected": {
			status: 200, body: string(partialBody(-1, "")),
			want: export.OutcomeAccepted,
		},
		"an unreadable success": {status: 200, body: "\xff\xff", want: export.OutcomeAccepted},

		"throttled": {
			status: 429, header: map[string]string{"Retry-After": "7"},
			want: export.OutcomeNotYet, after: 7 * time.Second, err: "429 Too Many Requests",
		},
		"throttled with a long delay": {
			status: 429, header: map[string]string{"Retry-After": "9999999"},
			want: export.OutcomeNotYet, after: time.Minute, err: "429",
		},
		"a bad gateway": {status: 502, want: export.OutcomeNotYet, err: "502"},
		"unavailable": {
			status: 503, body: "come back\n", want: export.OutcomeNotYet,
			err: `503 Service Unavailable: "come back"`,
		},
		"gateway timeout": {status: 504, want: export.OutcomeNotYet, err: "504"},
		"delay in the past": {
			status: 502,
			header: map[string]string{"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"},
			want:   export.OutcomeNotYet,
			err:    "502",
		},
		"missing credentials": {
			status: 401, want: export.OutcomeRefused,
			err: "set credentials in OTEL_EXPORTER_OTLP_HEADERS",
		},
		"wrong credentials": {
			status: 403, want: export.OutcomeRefused,
			err: "check the credentials in OTEL_EXPORTER_OTLP_HEADERS",
		},
		"no such path":                   {status: 404, want: export.OutcomeRefused, err: "/v1/metrics"},
		"timeout of the receiver":        {status: 408, want: export.OutcomeRefused, err: "408"},
		"too large":                      {status: 413, want: export.OutcomeRefused, err: "raise"},
		"another encoding":               {status: 415, want: export.OutcomeRefused, err: "gzip"},
		"internal error of the receiver": {status: 500, want: export.OutcomeRefused, err: "500"},
		"an unknown method":              {status: 501, want: export.OutcomeRefused, err: "501"},
		"redirect": {
			status: 307, header: map[string]string{"Location": "/elsewhere"},
			want: export.OutcomeRefused, err: "307",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := started(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range test.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			})
			x := exporterTo(t, r.URL, func(c *Config) { c.Compress = len(name)%2 == 0 })
			a := deliver(t, x, onePayload(t, x))
			if a.Outcome != test.want || a.Rejected != test.rejected || a.After != test.after || a.Silent {
				t.Errorf("%+v, want outcome %d, %d spans rejected, retry after %s", a, test.want,
					test.rejected, test.after)
			}
			switch {
			case test.err == "" && a.Err != nil:
				t.Errorf("error %v", a.Err)
			case test.err != "" && (a.Err == nil || !strings.Contains(a.Err.Error(), test.err)):
				t.Errorf("error %v, want one that contains %s", a.Err, test.err)
			}
			if payloads, _ := r.got(); len(payloads) != 1 {
				t.Errorf("%d requests, want one", len(payloads))
			}
		})
	}
}

// FuzzAnswers checks that no body is read beyond its end or takes long.
func FuzzAnswers(f *testing.F) {
	f.Add(partialBody(7, "old"))
	f.Fuzz(func(_ *testing.T, answer []byte) {
		maxSpansInPoints(answer, 3)
	})
}
