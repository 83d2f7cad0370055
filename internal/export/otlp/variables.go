package otlp

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/check/endpoint"
)

// Variables are the settings in OpenTelemetry's environment variables. Each variable has a general
// form, such as OTEL_EXPORTER_OTLP_TIMEOUT, and a form for metrics, such as
// OTEL_EXPORTER_OTLP_METRICS_TIMEOUT, which takes precedence.
type Variables struct {
	Endpoint    endpoint.URL // zero if not set
	From        string       // name of the variable that sets Endpoint
	Ignored     string       // why the variable of Endpoint is ignored; empty if it is not
	Headers     Headers
	Timeout     time.Duration // 0 if not set
	Compress    bool
	Certificate string // file with the CA certificates for the receiver's certificate
	ClientCert  string // file with our client certificate
	ClientKey   string // file with its key

	Preference Temporality // empty if not set
}

const (
	generalPrefix = "OTEL_EXPORTER_OTLP_"
	metricsPrefix = "OTEL_EXPORTER_OTLP_METRICS_"

	// ownProtocol is the only protocol of this exporter. With another one, the variables are meant for
	// the SDKs in the pod, which has one environment for all containers.
	ownProtocol = "http/protobuf"

	// TemporalityVariable has no general form.
	TemporalityVariable = metricsPrefix + "TEMPORALITY_PREFERENCE"

	// metricsPath is the path of OTLP metrics below a base endpoint.
	metricsPath = "/v1/metrics"

	// longestTimeout is the maximum timeout of one request, so that requests end within the grace period
	// of a shutdown, or shortly after it.
	longestTimeout = time.Minute
)

// environment reads variables and collects their errors.
type environment struct {
	getenv func(string) string
	errs   error
}

// forms returns the two variables for a setting, in order of precedence: the one for metrics, and
// the one for all signals.
func forms(setting string) []string {
	return []string{metricsPrefix + setting, generalPrefix + setting}
}

// lookup returns the first variable that is set, and its value.
func (e *environment) lookup(variables ...string) (variable, value string) {
	for _, variable = range variables {
		if value = strings.TrimSpace(e.getenv(variable)); value != "" {
			return variable, value
		}
	}
	return "", ""
}

// read parses the first variable that is set, stores its value in to, and returns its name. If none
// is set, it returns "". An error of parse is added to e.errs.
func read[T any](
	e *environment, to *T, variables []string, parse func(variable, text string) (T, error),
) string {
	variable, text := e.lookup(variables...)
	if text == "" {
		return ""
	}
	value, err := parse(variable, text)
	if err != nil {
		e.errs = errors.Join(e.errs, fmt.Errorf("read %s: %w", variable, err))
	}
	*to = value
	return variable
}

// ReadVariables reads the OTEL_EXPORTER_OTLP variables. The error names every invalid variable; the
// valid ones are read nevertheless.
func ReadVariables(getenv func(string) string) (v Variables, err error) {
	e := &environment{getenv: getenv}
	v.From = read(e, &v.Endpoint, forms("ENDPOINT"), endpointOf)
	read(e, &v.Headers, forms("HEADERS"), parseHeaders)
	read(e, &v.Timeout, forms("TIMEOUT"), parseTimeout)
	read(e, &v.Compress, forms("COMPRESSION"), parseCompression)
	read(e, &v.Preference, []string{TemporalityVariable}, parsePreference)
	if variable, protocol := e.lookup(forms("PROTOCOL")...); v.From != "" && protocol != "" && protocol != ownProtocol {
		v.Ignored = fmt.Sprintf("%s is ignored because %s is %s", v.From, variable, protocol)
		v.Endpoint, v.From = endpoint.URL{}, ""
	}
	_, v.Certificate = e.lookup(forms("CERTIFICATE")...)
	_, v.ClientCert = e.lookup(forms("CLIENT_CERTIFICATE")...)
	_, v.ClientKey = e.lookup(forms("CLIENT_KEY")...)
	return v, e.errs
}

var endpoints = endpoint.Form{
	What:    "OTLP endpoint (not shown, since it may hold a key)",
	Give:    "give http://host:4318/v1/metrics, https://host/v1/metrics or unix:///path/of/socket",
	User:    ", set OTEL_EXPORTER_OTLP_HEADERS",
	Schemes: map[string]endpoint.Scheme{"http": {}, "https": {IsTLS: true}},
	IsWeb:   true,
}

// ParseEndpoint parses the URL of a metrics endpoint. If the URL has no path, it adds /v1/metrics.
func ParseEndpoint(text string) (endpoint.URL, error) {
	e, err := endpoints.Parse(text)
	if err == nil && e.Path() == "" {
		e = e.Below(metricsPath)
	}
	return e, err
}

// endpointOf parses an endpoint as the specification defines: the variable for metrics contains the
// exact URL; the general variable contains the base URL of the metrics path. A socket has no path,
// so the metrics path is always added.
func endpointOf(variable, text string) (endpoint.URL, error) {
	e, err := endpoints.Parse(text)
	switch {
	case err != nil:
		return endpoint.URL{}, err
	case e.Network == "unix" || !strings.HasPrefix(variable, metricsPrefix):
		return e.Below(metricsPath), nil
	case e.Path() == "":
		return e.Below("/"), nil
	}
	return e, nil
}

// parseTimeout parses a number of milliseconds.
func parseTimeout(_, text string) (time.Duration, error) {
	limit := longestTimeout.Milliseconds()
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n <= limit {
		return time.Duration(n) * time.Millisecond, nil
	}
	return 0, fmt.Errorf("%q is not a number of milliseconds from 1 to %d", text, limit)
}

func parseCompression(_, text string) (gzip bool, err error) {
	if text != "gzip" && text != "none" {
		err = fmt.Errorf("%q is neither gzip nor none", text)
	}
	return text == "gzip", err
}

// tlsConfig reads the certificate files. It reads the client certificate again for each connection,
// so that it can be renewed while the daemon runs.
func tlsConfig(v *Variables) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var errs error
	if v.Certificate != "" {
		config.RootCAs, errs = check.Authorities("certificates of authorities", v.Certificate)
	}
	if cmp.Or(v.ClientCert, v.ClientKey) == "" {
		return config, errs
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(v.ClientCert, v.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("read client certificate: %w", err)
		}
		return &pair, nil
	}
	if v.ClientCert == "" || v.ClientKey == "" {
		return nil, errors.Join(errs, fmt.Errorf("read client certificate: "+
			"set both %[1]sCLIENT_CERTIFICATE and %[1]sCLIENT_KEY, or none", generalPrefix))
	}
	_, err := config.GetClientCertificate(nil)
	return config, errors.Join(errs, err)
}

// Temporality determines which spans a point counts: those of its window, or all since its series
// began.
type Temporality string

const (
	Delta      Temporality = "delta"
	Cumulative Temporality = "cumulative"
)

// parsePreference parses a temporality preference, ignoring case. "lowmemory" means delta for
// counters and histograms.
func parsePreference(_, text string) (Temporality, error) {
	switch strings.ToLower(text) {
	case "cumulative":
		return Cumulative, nil
	case "delta", "lowmemory":
		return Delta, nil
	}
	return "", fmt.Errorf("%q is neither cumulative nor delta nor lowmemory", text)
}

// Headers are sent with each request. Their values are secret and are never shown.
type Headers struct{ all http.Header }

// ownHeaders are headers that only the exporter sets.
var ownHeaders = []string{
	"Content-Type", "Content-Encoding", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Te",
	"Trailer", "Upgrade",
}

// parseHeaders parses name=value pairs separated by commas. Values are percent-encoded.
func parseHeaders(_, text string) (h Headers, err error) {
	all := http.Header{}
	for i, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, escaped, isPair := strings.Cut(pair, "=")
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		value, unescaped := url.PathUnescape(strings.TrimSpace(escaped))
		switch {
		case !isPair || !isToken(name):
			err = errors.Join(err, fmt.Errorf("parse headers: entry %d is not name=value", i+1))
		case slices.Contains(ownHeaders, name):
			err = errors.Join(err, fmt.Errorf("parse headers: %s is set by the daemon", name))
		case unescaped != nil || !isHeaderText(value):
			err = errors.Join(err, fmt.Errorf("parse headers: the value of %s is not valid in a header; "+
				"percent-encode it, for example a space as %%20", name))
		default:
			all.Set(name, value)
		}
	}
	if err != nil {
		return Headers{}, err
	}
	return Headers{all}, nil
}

// isToken reports whether name is a valid header name.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// isHeaderText reports whether value is a valid header value.
func isHeaderText(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// String returns the names of the headers, without their values.
func (h Headers) String() string {
	names := slices.Sorted(maps.Keys(h.all))
	for i, name := range names {
		names[i] = name + "=(hidden)"
	}
	return strings.Join(names, ",")
}

// GoString implements fmt.GoStringer, without values.
func (h Headers) GoString() string { return h.String() }

// MarshalText implements encoding.TextMarshaler, without values.
func (h Headers) MarshalText() ([]byte, error) { return []byte(h.String()), nil }
