package status

import (
	"net/http"
	"os"
	"testing"
)

// TestStatus_ForeignHostNamesAreRefused sends requests with foreign host names, as browsers do for a DNS rebinding
// attack. The page and the status are refused; metrics and probes are served.
func TestStatus_ForeignHostNamesAreRefused(t *testing.T) {
	s := startServer(t, Config{Hosts: []string{"Stats.Example"}, Debug: true})
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, isKnown := range map[string]bool{
		"": true, "localhost": true, "localhost:9126": true, "LocalHost.": true, "127.0.0.1:9126": true,
		"10.1.2.3": true, "[::1]:9126": true, "[fe80::1%25eth0]:9126": true, "::1": true,
		host: true, host + ":80": true, "stats.example:443": true,
		"evil.example": false, "evil.example:9126": false, "localhost.evil.example": false,
		"127.0.0.1.evil.example": false, "10.1.2": false, "example": false, host + ".evil.example": false,
	} {
		for path, isGuarded := range map[string]bool{
			"/": true, "/status": true, "/page/main.js": true, "/debug/pprof/cmdline": true,
			"/metrics": false, "/livez": false,
		} {
			want := http.StatusOK
			if isGuarded && !isKnown {
				want = http.StatusMisdirectedRequest
			}
			response, body := get(t, s, path, func(r *http.Request) {
				if r.Host = host; host == "" {
					r.Host = s.Addr() // clients always send a Host; a test of hosts covers requests without one
				}
			})
			if response.StatusCode != want {
				t.Errorf("%q is asked for %s and answers %d, %.80s", host, path, response.StatusCode, body)
			}
		}
	}
	if !(hosts{}).allows("") {
		t.Error("a request without a name, of HTTP/1.0, is refused")
	}
}
