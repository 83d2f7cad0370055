package otlp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
)

func TestRequest_FollowsSpecification(t *testing.T) {
	r := started(t, nil)
	headers, err := parseHeaders("Api-Key=s%20ecret,host=metrics.example")
	if err != nil {
		t.Fatal(err)
	}
	x := exporterTo(t, r.URL+"/base/v1/metrics?tenant=a", func(c *Config) {
		c.Headers, c.Compress = headers, true
	})
	p := onePayload(t, x)
	if a := deliver(t, x, p); a.Outcome != export.OutcomeAccepted {
		t.Fatalf("%+v", a)
	}
	payloads, probes := r.got()
	if len(payloads) != 1 || probes != 0 {
		t.Fatalf("%d payloads and %d probes", len(payloads), probes)
	}
	got := payloads[0]
	for name, want := range map[string]string{
		"Content-Type":     "application/x-protobuf",
		"Content-Encoding": "gzip",
		"User-Agent":       "spanstatsd/1.2.3",
		"Api-Key":          "s ecret",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.header.Get(name), want)
		}
	}
	if got.path != "/base/v1/metrics?tenant=a" || got.host != "metrics.example" ||
		string(got.body) != string(decompress(p.Body)) {
		t.Errorf("%s of %s, %d bytes, want %d", got.path, got.host, len(got.body), len(decompress(p.Body)))
	}
}

// A redirection is not followed: another server gets neither payload nor headers.
func TestRedirect_IsNotFollowed(t *testing.T) {
	elsewhere := started(t, nil)
	r := started(t, func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	x := exporterTo(t, r.URL, nil)
	deliver(t, x, onePayload(t, x))
	if payloads, probes := elsewhere.got(); len(payloads)+probes != 0 {
		t.Error("a redirection was followed")
	}
}

func TestEndpoint_UnixSocket(t *testing.T) {
	path, l := socketIn(t)
	r := newReceiver(t, nil)
	_ = r.Listener.Close()
	r.Listener = l
	r.Start()
	x := exporterTo(t, "unix://"+path, nil)
	if a := deliver(t, x, onePayload(t, x)); a.Outcome != export.OutcomeAccepted {
		t.Fatalf("%+v", a)
	}
	if payloads, _ := r.got(); payloads[0].path != "/v1/metrics" || payloads[0].host != "localhost" {
		t.Errorf("%s of %s", payloads[0].path, payloads[0].host)
	}
	if x.Describe().URL != "unix://"+path {
		t.Errorf("shown as %s", x.Describe().URL)
	}
}

// The operator's timeout applies, if it is shorter than the caller's.
func TestTimeout_ShorterThanCallers(t *testing.T) {
	_, l := socketIn(t) // accepts connections and reads nothing
	x := exporterTo(t, "unix://"+l.Addr().String(), func(c *Config) { c.Timeout = 20 * time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if a := x.Deliver(ctx, onePayload(t, x)); a.Outcome != export.OutcomeNotYet ||
		!errors.Is(a.Err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("%+v", a)
	}
}

// An endpoint with the port of gRPC, the most common mistake, is named in the error.
func TestEndpoint_GRPCPortIsNamed(t *testing.T) {
	for address, isNamed := range map[string]bool{
		"http://127.0.0.1:4317/v1/metrics": true,
		"http://127.0.0.1:4318/v1/metrics": false,
	} {
		endpoint, err := ParseEndpoint(address)
		if err != nil || strings.Contains(hint(endpoint), "4318") != isNamed {
			t.Errorf("%s: %q, %v", address, hint(endpoint), err)
		}
	}
}
