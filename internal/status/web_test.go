package status

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startServer starts a server with components without spans.
func startServer(t *testing.T, config Config) *Server {
	t.Helper()
	s := newServer(t, config)
	s.Start()
	s.SetReady(true)
	return s
}

func newServer(t *testing.T, config Config) *Server {
	t.Helper()
	config.Addr, config.Version, config.FlushInterval = "127.0.0.1:0", "test", 10*time.Second
	config.Sources, config.Log = rooms(t), slog.New(slog.DiscardHandler)
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(t.Context()) })
	return s
}

// bcrypt hash of "secret"
const users = "basic_auth_users:\n  operator: $2a$04$gsJBLWXL/aKgf6mn8UmhZe5hOmTFW6G7kfjb7XSQP6QMmue0h2uSO\n"

func webConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "web.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPassword checks that everything requires the password, except for probes, which a kubelet must reach.
func TestPassword(t *testing.T) {
	s := startServer(t, Config{WebConfigFile: webConfig(t, users), Debug: true})
	for path, open := range map[string]bool{
		"/livez": true, "/readyz": true,
		"/": false, "/status": false, "/metrics": false, "/page/main.js": false, "/debug/pprof/": false,
		"/livez/../status": false, "//livez": false, "/livez/": false,
	} {
		without, _ := get(t, s, path, nil)
		if got := without.StatusCode == http.StatusOK; got != open {
			t.Errorf("%s without a password: %s", path, without.Status)
		}
		if strings.Contains(path, "livez/") || path == "//livez" {
			continue
		}
		with, _ := get(t, s, path, func(r *http.Request) { r.SetBasicAuth("operator", "secret") })
		if with.StatusCode != http.StatusOK {
			t.Errorf("%s with the password: %s", path, with.Status)
		}
	}
	if wrong, _ := get(t, s, "/status", func(r *http.Request) {
		r.SetBasicAuth("operator",
			"guess")
	}); wrong.StatusCode != http.StatusUnauthorized {
		t.Errorf("a wrong password: %s", wrong.Status)
	}
}

// TestTLS serves everything, including probes, with the certificate of the web config file.
func TestTLS(t *testing.T) {
	certificate, key := selfSigned(t)
	s := startServer(t, Config{WebConfigFile: webConfig(t,
		"tls_server_config:\n  cert_file: "+certificate+"\n  key_file: "+key+"\n"+users)})
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]int{"/livez": http.StatusOK, "/status": http.StatusUnauthorized} {
		response, err := client.Get("https://" + s.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %s", path, response.Status)
		}
	}
	if response, err := http.Get("http://" + s.Addr() + "/livez"); err == nil {
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			t.Error("answers without TLS, too")
		}
	}
}

// TestProbes_InvalidWebConfig makes the file or its certificate invalid after the start. Probes are
// served, over TLS with the last valid certificate, and all other requests fail. A fixed file is used again.
func TestProbes_InvalidWebConfig(t *testing.T) {
	certificate, key := selfSigned(t)
	encrypted := "tls_server_config:\n  cert_file: " + certificate + "\n  key_file: " + key + "\n" + users
	for what, c := range map[string]struct{ scheme, good, broken string }{
		"password": {"http", users, ""}, "tls": {"https", encrypted, ""},
		"certificate": {"https", encrypted, certificate},
	} {
		t.Run(what, func(t *testing.T) {
			file := webConfig(t, c.good)
			s := startServer(t, Config{WebConfigFile: file})
			broken := cmp.Or(c.broken, file)
			good, err := os.ReadFile(broken)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				text   []byte
				status int
			}{
				{good, http.StatusUnauthorized},
				{[]byte("no: [sense"), http.StatusInternalServerError},
				{good, http.StatusUnauthorized},
			} {
				// Replaced atomically, like a kubelet does it, because the server may be reading the file.
				if err := errors.Join(os.WriteFile(broken+".new", step.text, 0o600),
					os.Rename(broken+".new", broken)); err != nil {
					t.Fatal(err)
				}
				for path, want := range map[string]int{
					"/livez": http.StatusOK, "/readyz": http.StatusOK,
					"/status": step.status,
				} {
					if status := statusOf(t, c.scheme+"://"+s.Addr()+path); status != want {
						t.Errorf("%.10s: %s: %d, want %d", step.text, path, status, want)
					}
				}
			}
		})
	}
}

// statusOf sends a request over a new connection, without verifying the certificate.
func statusOf(t *testing.T, url string) int {
	t.Helper()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	response, err := client.Get(url)
	if err != nil {
		t.Error(err)
		return 0
	}
	response.Body.Close()
	return response.StatusCode
}

// TestWebConfig_Unusable checks that New returns an error before it listens.
func TestWebConfig_Unusable(t *testing.T) {
	for _, file := range []string{
		filepath.Join(t.TempDir(), "missing"), webConfig(t, "tls_server_config: 7"),
		webConfig(t, "basic_auth_users:\n  a: plain"), webConfig(t, "no_such_key: 1"),
	} {
		_, err := New(Config{Addr: "127.0.0.1:0", WebConfigFile: file, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "--web-config-file") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestProfiles_OnlyWithDebug(t *testing.T) {
	for debug, want := range map[bool]int{false: http.StatusNotFound, true: http.StatusOK} {
		s := startServer(t, Config{Debug: debug})
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline"} {
			if response, _ := get(t, s, path, nil); response.StatusCode != want {
				t.Errorf("debug %t: %s: %s", debug, path, response.Status)
			}
		}
	}
}

// selfSigned writes a self-signed certificate and its key.
func selfSigned(t *testing.T) (certificateFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "spanstatsd"},
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: certificate},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}
