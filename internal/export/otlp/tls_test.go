package otlp

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
)

// authority is a certificate authority with its files.
type authority struct {
	folder string
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	file   string
	serial int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{folder: t.TempDir()}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
	}
	a.key, a.cert = a.sign(t, template, template)
	a.file = a.write(t, "ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

// sign creates a key and its certificate.
func (a *authority) sign(t *testing.T, template, parent *x509.Certificate) (*ecdsa.PrivateKey,
	*x509.Certificate,
) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	by := a.key
	if by == nil {
		by = key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return key, cert
}

// issue creates the files of a certificate and its key.
func (a *authority) issue(t *testing.T, name string) (certFile, keyFile string) {
	t.Helper()
	a.serial++
	key, cert := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(1 + a.serial),
		Subject:      pkix.Name{CommonName: name},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}, a.cert)
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return a.write(t, name+".pem", "CERTIFICATE", cert.Raw), a.write(t, name+".key", "EC PRIVATE KEY", raw)
}

func (a *authority) write(t *testing.T, name, kind string, bytes []byte) string {
	t.Helper()
	file := filepath.Join(a.folder, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}),
		0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// overTLS is a receiver with a certificate of an authority. It requests client certificates.
func overTLS(
	t *testing.T, a *authority, http2 bool, answer http.HandlerFunc, configure ...func(*http.Server),
) *receiver {
	t.Helper()
	r := newReceiver(t, answer)
	pair, err := tls.LoadX509KeyPair(a.issue(t, "server"))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	r.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients,
		ClientAuth: tls.VerifyClientCertIfGiven,
	}
	r.EnableHTTP2 = http2
	r.Config.ErrorLog = nil
	for _, f := range configure {
		f(r.Config)
	}
	r.StartTLS()
	return r
}

func TestTLS_BothHTTPVersions(t *testing.T) {
	a := newAuthority(t)
	for proto, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		subjects := make(chan string, 2)
		r := overTLS(t, a, http2, func(_ http.ResponseWriter, req *http.Request) {
			for _, cert := range req.TLS.PeerCertificates {
				subjects <- cert.Subject.CommonName
			}
		})
		x := exporterTo(t, r.URL, func(c *Config) {
			c.Certificate = a.file
			c.ClientCert, c.ClientKey = a.issue(t, "daemon")
		})
		for range 2 {
			if got := deliver(t, x, onePayload(t, x)); got.Outcome != export.OutcomeAccepted {
				t.Fatalf("%s: %+v", proto, got)
			}
		}
		payloads, probes := r.got()
		if len(payloads) != 2 || probes != 0 || payloads[0].proto != proto {
			t.Errorf("%d payloads and %d probes, the first by %s, want %s", len(payloads), probes,
				payloads[0].proto, proto)
		}
		if len(subjects) != 2 || <-subjects != "daemon" {
			t.Errorf("%s: our certificate was not shown", proto)
		}
	}
}

// A connection that ends after a complete payload is ambiguous over TLS as well, because the
// connection below TLS is watched.
func TestTLS_CloseAfterPayloadIsAmbiguous(t *testing.T) {
	a := newAuthority(t)
	for _, http2 := range []bool{false, true} {
		r := overTLS(t, a, http2, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		x := exporterTo(t, r.URL, func(c *Config) { c.Certificate = a.file })
		if got := deliver(t, x, onePayload(t, x)); got.Outcome != export.OutcomeUnknown || !got.Silent {
			t.Errorf("HTTP/2 %t: %+v, want an ambiguous payload", http2, got)
		}
	}
}

// A reset makes the alert close_notify fail, with which net/http closes the connection. This failure must not be
// attributed to the payload, or the payload is retried and counted twice.
func TestTLS_ResetAfterPayloadIsAmbiguous(t *testing.T) {
	type rawConn struct{}
	a := newAuthority(t)
	for _, http2 := range []bool{false, true} {
		r := overTLS(t, a, http2, func(_ http.ResponseWriter, req *http.Request) {
			conn := req.Context().Value(rawConn{}).(*net.TCPConn)
			_ = conn.SetLinger(0)
			_ = conn.Close()
		}, func(c *http.Server) {
			c.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, rawConn{}, c.(*tls.Conn).NetConn())
			}
		})
		x := exporterTo(t, r.URL, func(c *Config) { c.Certificate = a.file })
		for range 5 {
			payload := onePayload(t, x)
			if got := deliver(t, x, payload); got.Outcome != export.OutcomeUnknown || !got.Silent {
				t.Errorf("HTTP/2 %t: %+v, want an ambiguous payload", http2, got)
			}
		}
	}
}

func TestTLS_UntrustedServerGetsNothing(t *testing.T) {
	r := overTLS(t, newAuthority(t), true, nil)
	x := exporterTo(t, r.URL, func(c *Config) { c.Certificate = newAuthority(t).file })
	got := deliver(t, x, onePayload(t, x))
	if got.Outcome != export.OutcomeNotYet || !got.Silent ||
		!strings.Contains(got.Err.Error(), "certificate") {
		t.Errorf("%+v, want another try", got)
	}
	if payloads, probes := r.got(); len(payloads)+probes != 0 {
		t.Error("an untrusted server got a request")
	}
}

// A renewed certificate is used, because its files are read for each connection.
func TestTLS_RenewedCertificate(t *testing.T) {
	a := newAuthority(t)
	subjects := make(chan string, 2)
	r := overTLS(t, a, false, func(_ http.ResponseWriter, req *http.Request) {
		subjects <- req.TLS.PeerCertificates[0].Subject.CommonName
	})
	cert, key := a.issue(t, "old")
	x := exporterTo(t, r.URL, func(c *Config) {
		c.Certificate, c.ClientCert, c.ClientKey = a.file, cert, key
	})
	deliver(t, x, onePayload(t, x))
	newCert, newKey := a.issue(t, "new")
	for from, to := range map[string]string{newCert: cert, newKey: key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	deliver(t, x, onePayload(t, x))
	if first, second := <-subjects, <-subjects; first != "old" || second != "new" {
		t.Errorf("we were %s, then %s", first, second)
	}
}

func TestTLS_UnusableFilesAreNamed(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(t, "daemon")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]Variables{
		"no authority":       {Certificate: filepath.Join(a.folder, "absent")},
		"an empty authority": {Certificate: empty},
		"no key":             {ClientCert: cert},
		"no certificate":     {ClientKey: key},
		"another key":        {ClientCert: cert, ClientKey: empty},
	} {
		v.Endpoint, _ = ParseEndpoint("https://host")
		if _, err := New(Config{Variables: v}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("an empty endpoint was accepted")
	}
}
