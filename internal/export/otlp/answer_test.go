package otlp

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

func partialBody(rejected int64, said string) []byte {
	return protolite.AppendBytes(nil, 1, protolite.AppendBytes(protolite.AppendVarint(nil, 1, uint64(rejected)), 2, said))
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
		said     string
	}{
		"taken": {status: 200, want: export.OutcomeAccepted},
		"taken, and said so": {
			status: 200, body: string(partialBody(0, "a warning")),
			want: export.OutcomeAccepted, said: `"a warning"`,
		},
		"taken, with nothing to say": {
			status: 200, body: string(partialBody(0, "")),
			want: export.OutcomeAccepted,
		},
		"taken by another code": {status: 202, want: export.OutcomeAccepted},
		"one point rejected": {
			status: 200, body: string(partialBody(1, "too old")),
			want: export.OutcomeAccepted, rejected: 5, said: `1 data points of a payload: "too old"`,
		},
		"two points rejected": {
			status: 200, body: string(partialBody(2, "")),
			want: export.OutcomeAccepted, rejected: 8, said: "2 data points",
		},
		"all points rejected": {
			status: 200, body: string(partialBody(99, "")),
			want: export.OutcomeAccepted, rejected: 10, said: "99 data points",
		},
		"an impossible number rejected": {
			status: 200, body: string(partialBody(-1, "")),
			want: export.OutcomeAccepted,
		},
		"an unreadable success": {status: 200, body: "\xff\xff", want: export.OutcomeAccepted},

		"throttled": {
			status: 429, header: map[string]string{"Retry-After": "7"},
			want: export.OutcomeNotYet, after: 7 * time.Second, said: "429 Too Many Requests",
		},
		"throttled for ever": {
			status: 429, header: map[string]string{"Retry-After": "9999999"},
			want: export.OutcomeNotYet, after: time.Minute, said: "429",
		},
		"a bad gateway": {status: 502, want: export.OutcomeNotYet, said: "502"},
		"unavailable": {
			status: 503, body: "come back\n", want: export.OutcomeNotYet,
			said: `503 Service Unavailable: "come back"`,
		},
		"a gateway that waited": {status: 504, want: export.OutcomeNotYet, said: "504"},
		"a time that asks for less": {
			status: 502,
			header: map[string]string{"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"},
			want:   export.OutcomeNotYet,
			said:   "502",
		},
		"nobody's key": {
			status: 401, want: export.OutcomeRefused,
			said: "set credentials in OTEL_EXPORTER_OTLP_HEADERS",
		},
		"the wrong key": {
			status: 403, want: export.OutcomeRefused,
			said: "check the credentials in OTEL_EXPORTER_OTLP_HEADERS",
		},
		"no such path":               {status: 404, want: export.OutcomeRefused, said: "/v1/metrics"},
		"a time-out of the receiver": {status: 408, want: export.OutcomeRefused, said: "408"},
		"too large":                  {status: 413, want: export.OutcomeRefused, said: "raise"},
		"another encoding":           {status: 415, want: export.OutcomeRefused, said: "gzip"},
		"a defect of the receiver":   {status: 500, want: export.OutcomeRefused, said: "500"},
		"an unknown method":          {status: 501, want: export.OutcomeRefused, said: "501"},
		"a redirection": {
			status: 307, header: map[string]string{"Location": "/elsewhere"},
			want: export.OutcomeRefused, said: "307",
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
				t.Errorf("%+v, want outcome %d, %d spans rejected, another try after %s", a, test.want,
					test.rejected, test.after)
			}
			switch {
			case test.said == "" && a.Err != nil:
				t.Errorf("error %v", a.Err)
			case test.said != "" && (a.Err == nil || !strings.Contains(a.Err.Error(), test.said)):
				t.Errorf("error %v, want one that says %s", a.Err, test.said)
			}
			if payloads, _ := r.got(); len(payloads) != 1 {
				t.Errorf("%d requests, want one", len(payloads))
			}
		})
	}
}

// FuzzAnswers expects that no body is read beyond its end, or takes long.
func FuzzAnswers(f *testing.F) {
	f.Add(partialBody(7, "old"))
	f.Fuzz(func(_ *testing.T, answer []byte) {
		maxSpansInPoints(answer, 3)
	})
}
