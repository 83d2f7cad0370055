package otlp

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
)

// lines is an in-memory log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// overTLS returns an upstream with a self-signed certificate for 127.0.0.1, and the file with the certificate.
func overTLS(t *testing.T, isGRPC bool, change func(*tls.Config)) (to *httptest.Server, file string) {
	t.Helper()
	to = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isGRPC {
			_ = successReply().writeGRPC(w, false)
		}
	}))
	to.EnableHTTP2, to.TLS = isGRPC, &tls.Config{}
	to.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	if change != nil {
		change(to.TLS)
	}
	to.StartTLS()
	t.Cleanup(to.Close)
	file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: to.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return to, file
}

// TestTLS_Upstream checks that an upstream with a trusted certificate gets requests. With any TLS error the
// SDK is asked to retry, and the log contains advice.
func TestTLS_Upstream(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*tls.Config)
		host    string // host name in the URL, instead of 127.0.0.1
		isPlain bool   // whether the upstream does not use TLS
		trust   bool
		advice  string // expected text in the log; empty if the request succeeds
	}{
		"private authority": {trust: true},
		"unknown authority": {advice: "--otlp-forward-ca"},
		"another name": {
			trust: true, host: "localhost",
			advice: "use a host name of its certificate in --otlp-forward",
		},
		"no TLS": {isPlain: true, advice: "the server does not use TLS on this port"},
		"wants a certificate": {trust: true, change: func(c *tls.Config) {
			c.ClientAuth, c.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12
		}, advice: "see its log"},
		"only old TLS": {trust: true, change: func(c *tls.Config) {
			c.MaxVersion = tls.VersionTLS11
		}, advice: "see its log"},
		"is not there any more": {trust: true, host: "127.0.0.1:1", advice: "check that the server is running"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, isGRPC := range []bool{false, true} {
				server, file := overTLS(t, isGRPC, c.change)
				address, scheme := server.Listener.Addr().String(), map[bool]string{
					false: "https://",
					true:  "grpcs://",
				}[isGRPC]
				switch {
				case c.isPlain:
					address = newCollector(t, false, nil).listener.Addr().String()
				case strings.Contains(c.host, ":"):
					address = c.host
				case c.host != "":
					address = strings.Replace(address, "127.0.0.1", c.host, 1)
				}
				to, err := ParseCollector(scheme + address)
				if err == nil && c.trust {
					err = to.TrustIn(file)
				}
				if err != nil {
					t.Fatal(err)
				}
				log := &lines{}
				h := newHarness(t, func(config *Config, _ *aggregate.Config) {
					config.Forward, config.Buffer, config.Log = to, 0, slog.New(slog.NewTextHandler(log, nil))
				})
				for _, isHTTP2 := range []bool{false, true} {
					a := post(t, h.client(isHTTP2), exported("shop", 0, 10, 1))
					if want := map[bool]int{true: 200, false: 503}[c.advice == ""]; a.status != want {
						t.Errorf("gRPC %v: answered %d", isGRPC, a.status)
					}
				}
				if c.advice != "" && !log.has(c.advice) {
					t.Errorf("gRPC %v: the log has %q", isGRPC, log.text.String())
				}
				h.stop()
				if h.rows["name 0"] == 0 {
					t.Errorf("gRPC %v: counted %v", isGRPC, h.rows)
				}
			}
		})
	}
}

func TestTLS_UnusableAuthorityIsNamed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ url, file, says string }{
		{"http://h", "/ca", "not a URL with TLS"},
		{"grpc://h", "/ca", "not a URL with TLS"},
		{"https://h", "/no/such/file", "read otlp-forward-ca"},
		{"grpcs://h", empty, "no PEM certificate"},
	} {
		d, err := ParseCollector(c.url)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.TrustIn(c.file); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s with %s: %v", c.url, c.file, err)
		}
	}
	if err := new(Collector).TrustIn("/ca"); err == nil {
		t.Error("no destination, and an authority of it")
	}
}

// TestLog_UpstreamRefusal checks that the log has the upstream's message, since the SDK drops the refused request.
func TestLog_UpstreamRefusal(t *testing.T) {
	to := newCollector(t, true, func(w http.ResponseWriter, _ int) {
		_ = errorReply(otlpanswer.Unauthenticated, "no such key").write(w, encodingGRPC, signalTraces)
	})
	forward, log := forwardTo(t, to.url()), &lines{}
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		forward(c, a)
		c.Log = slog.New(slog.NewTextHandler(log, nil))
	})
	for i := range 3 {
		if a := post(t, h.client(false), exported("shop", i*10, 1, 1)); a.status != http.StatusUnauthorized {
			t.Errorf("answered %+v", a)
		}
	}
	if !log.has("no such key") || strings.Count(log.text.String(), "rejected a request") != 1 {
		t.Errorf("the log has %q", log.text.String())
	}
}
