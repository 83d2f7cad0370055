package otlp

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
)

// TestCORS_OriginPatterns checks that a pattern matches only its own origin, with one label of the host for each
// star.
func TestCORS_OriginPatterns(t *testing.T) {
	for _, test := range []struct {
		patterns  string
		may, mayN []string
	}{
		{"https://shop.example", []string{"https://shop.example"}, []string{
			"http://shop.example", "https://shop.example:8443", "https://a.shop.example",
			"https://shop.example.evil",
			"https://shop.example/", "https://SHOP.example", "null", "https://evil", "https://shop.exampl",
		}},
		{
			"https://*.Example.com,http://localhost:3000",
			[]string{"https://a.example.com", "https://a-1_b.example.com", "http://localhost:3000"},
			[]string{
				"https://example.com", "https://a.b.example.com", "https://.example.com",
				"http://a.example.com",
				"https://a.example.com:1",
				"https://a.example.com.evil", "https://evil/.example.com", "https://evil?.example.com",
				"http://localhost",
				"https://evil:1.example.com", "https://evil@.example.com", "http://localhost:3001",
			},
		},
		{
			"https://*.eu.*.example",
			[]string{"https://a.eu.b.example"},
			[]string{"https://eu.b.example", "https://a.us.b.example"},
		},
		{"http://[::1]:80", []string{"http://[::1]:80"}, []string{"http://[::1]"}},
		{"*", []string{"https://shop.example", "null", "http://[::1]:80"}, nil},
	} {
		o, err := ParseOrigins(strings.Split(test.patterns, ","))
		if err != nil {
			t.Fatal(err)
		}
		for _, origin := range append(test.may, test.mayN...) {
			if want := slices.Contains(test.may, origin); o.match(origin) != want {
				t.Errorf("%s: %q may %v, want %v", test.patterns, origin, !want, want)
			}
		}
	}
	for _, bad := range []string{
		"", "shop.example", "https://", "https://shop.example/",
		"https://a*.example", "https://*a.example", "https://**", "//x", "https://u@x", "null", "https://x?",
		"https://x y",
	} {
		if o, err := ParseOrigins([]string{"https://good.example", bad}); err == nil ||
			!strings.Contains(err.Error(), "--otlp-cors-origin") {
			t.Errorf("%q is accepted, as %q: %v", bad, o, err)
		}
	}
	if o, err := ParseOrigins(nil); o != nil || err != nil {
		t.Errorf("of none become %q, %v", o, err)
	}
}

const shop = "https://shop.example"

// withOrigins returns a receiver that accepts requests from scripts of the pages of shop.
func withOrigins(t *testing.T, change func(*Config, *aggregate.Config)) *harness {
	t.Helper()
	return newHarness(t, func(c *Config, a *aggregate.Config) {
		c.AllowedOrigins, c.MaxBody = Origins{shop}, bodies.FirstBuffer
		if change != nil {
			change(c, a)
		}
	})
}

// TestCORS_Preflight covers CORS preflight requests for accepted and for other origins.
func TestCORS_Preflight(t *testing.T) {
	h := withOrigins(t, nil)
	client := h.client(false)
	ask := func(path, origin string, header ...string) answered {
		return send(t, client, http.MethodOptions, path, nil, append([]string{
			"Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
			"content-type,x-key",
		}, header...)...)
	}
	for _, path := range []string{"/v1/traces", "/v1/logs"} {
		a := ask(path, shop)
		for name, want := range map[string]string{
			"Access-Control-Allow-Origin": shop, "Access-Control-Allow-Methods": "POST",
			"Access-Control-Allow-Headers": "content-type,x-key", "Access-Control-Max-Age": "7200",
		} {
			if a.header.Get(name) != want {
				t.Errorf("%s says %s: %q, want %q", path, name, a.header.Get(name), want)
			}
		}
		if a.status != http.StatusNoContent || !slices.Contains(a.header.Values("Vary"), "Origin") ||
			len(a.body) != 0 {
			t.Errorf("%s is answered %+v", path, a)
		}
	}
	if a := ask("/v1/traces", shop, "Access-Control-Request-Headers", ""); a.status != http.StatusNoContent ||
		a.header.Get("Access-Control-Allow-Headers") != "" {
		t.Errorf("a question for no fields is answered %+v", a)
	}
	for name, a := range map[string]answered{
		"another origin": ask("/v1/traces", "https://evil.example"),
		"many fields": ask("/v1/traces", shop, "Access-Control-Request-Headers",
			strings.Repeat("x-a,", 400)),
		"another path":     ask("/v1/profiles", shop),
		"a path of gRPC":   ask(signals[signalTraces].grpcPath, shop),
		"no question":      ask("/v1/traces", shop, "Access-Control-Request-Method", ""),
		"no origin at all": ask("/v1/traces", ""),
	} {
		want := map[string]int{
			"another path": 404, "a path of gRPC": 405, "no question": 405,
			"no origin at all": 405,
		}[name]
		if want == 0 {
			want = 403
		}
		if a.status != want || a.header.Get("Access-Control-Allow-Methods") != "" || want == 403 &&
			name != "many fields" && a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s is answered %+v, want %d", name, a, want)
		}
	}
	if got := h.Stats().Requests; got["other"] != 3 || got["refused"] != 6 {
		t.Errorf("requests %v", got)
	}
}

// TestCORS_ResponseHeaders checks the CORS header of every kind of response, for accepted and for other origins.
func TestCORS_ResponseHeaders(t *testing.T) {
	busy := newCollector(t, false, func(w http.ResponseWriter, _ int) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	local, forwarding := withOrigins(t, nil), withOrigins(t, forwardTo(t, busy.url()))
	unreachable := withOrigins(t, func(c *Config, a *aggregate.Config) {
		forwardTo(t, "unix:///nowhere/at/all")(c, a)
		c.Buffer = 0
	})
	good := exported("shop", 0, 1, 1)
	for _, test := range []struct {
		h      *harness
		path   string
		body   []byte
		header []string
		status int
	}{
		{local, "/v1/traces", good, nil, 200},
		{local, "/v1/traces", []byte("nonsense"), nil, 400},
		{local, "/v1/profiles", good, nil, 404},
		{local, "/v1/traces", make([]byte, bodies.FirstBuffer+1), nil, 413},
		{local, "/v1/traces", good, []string{"Content-Encoding", "br"}, 415},
		{forwarding, "/v1/traces", good, nil, 429},
		{unreachable, "/v1/traces", good, nil, 503},
	} {
		for _, origin := range []string{shop, "https://evil.example", ""} {
			a := send(t, test.h.client(false), http.MethodPost, test.path, bytes.NewReader(test.body),
				append([]string{"Content-Type", mediaProtobuf, "Origin", origin}, test.header...)...)
			says := a.header.Get("Access-Control-Allow-Origin")
			if a.status != test.status || (says == shop) != (origin == shop) ||
				(says == "") != (origin != shop) ||
				!slices.Contains(a.header.Values("Vary"), "Origin") ||
				(a.header.Get("Access-Control-Expose-Headers") == "Retry-After") != (origin == shop) {
				t.Errorf("%q at %s is answered %d with %v, want %d", origin, test.path, a.status, a.header,
					test.status)
			}
			if retries := test.status == 429 ||
				test.status == 503; retries != (a.header.Get("Retry-After") != "") {
				t.Errorf("%d says %q", test.status, a.header.Get("Retry-After"))
			}
		}
	}
}

// TestCORS_OffByDefault checks that no response has CORS headers if no origin is configured.
func TestCORS_OffByDefault(t *testing.T) {
	h := newHarness(t, nil)
	client := h.client(false)
	for _, a := range []answered{
		send(t, client, http.MethodOptions, "/v1/traces", nil, "Origin", shop,
			"Access-Control-Request-Method", "POST"),
		post(t, client, exported("shop", 0, 1, 1), "Origin", shop),
	} {
		for name := range a.header {
			if name == "Vary" || strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("answered %d with %s", a.status, name)
			}
		}
		if a.status != http.StatusMethodNotAllowed && a.status != http.StatusOK {
			t.Errorf("answered %+v", a)
		}
	}
}
