package otlp

import (
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

// variablesFor returns the names of the variables for a setting such as TIMEOUT: first the variable for metrics,
// which takes precedence, and then the variable for all signals.
func variablesFor(setting string) []string {
	return []string{metricsPrefix + setting, generalPrefix + setting}
}

// lookup returns the first variable that is set, and its value. It returns empty strings if none is set.
func (e *environment) lookup(variables ...string) (variable, value string) {
	for _, variable := range variables {
		value := strings.TrimSpace(e.getenv(variable))
		if value != "" {
			return variable, value
		}
	}
	return "", ""
}

// readSetting reads a setting from the first variable in variables that is set, and returns the name of the variable. It
// stores the parsed value in *target. If the value is invalid, it adds an error to e.errs, and leaves *target unchanged.
// If no variable is set, it returns "".
func readSetting[T any](
	e *environment, target *T, variables []string, parse func(text string) (T, error),
) (variable string) {
	variable, text := e.lookup(variables...)
	if variable == "" {
		return ""
	}
	value, err := parse(text)
	if err != nil {
		e.errs = errors.Join(e.errs, fmt.Errorf("read %s: %w", variable, err))
		return variable
	}
	*target = value
	return variable
}

// ReadVariables reads the environment variables that begin with OTEL_EXPORTER_OTLP. It returns the valid settings
// even if there is an error, which names every invalid variable. If the variables select a protocol that is not
// supported, their endpoint is ignored.
func ReadVariables(getenv func(string) string) (Variables, error) {
	var v Variables
	e := &environment{getenv: getenv}
	v.From = readSetting(e, &v.Endpoint, []string{metricsPrefix + "ENDPOINT"}, parseMetricsEndpoint)
	if v.From == "" {
		v.From = readSetting(e, &v.Endpoint, []string{generalPrefix + "ENDPOINT"}, parseBaseEndpoint)
	}
	readSetting(e, &v.Headers, variablesFor("HEADERS"), parseHeaders)
	readSetting(e, &v.Timeout, variablesFor("TIMEOUT"), parseTimeout)
	readSetting(e, &v.Compress, variablesFor("COMPRESSION"), parseCompression)
	readSetting(e, &v.Preference, []string{TemporalityVariable}, parsePreference)
	_, v.Certificate = e.lookup(variablesFor("CERTIFICATE")...)
	_, v.ClientCert = e.lookup(variablesFor("CLIENT_CERTIFICATE")...)
	_, v.ClientKey = e.lookup(variablesFor("CLIENT_KEY")...)

	protocolVariable, protocol := e.lookup(variablesFor("PROTOCOL")...)
	isSupported := protocol == "" || protocol == ownProtocol
	if v.From != "" && !isSupported {
		v.ignoreEndpoint(fmt.Sprintf("%s is %s", protocolVariable, protocol))
	}
	return v, e.errs
}

// ignoreEndpoint removes the endpoint, and records the reason.
func (v *Variables) ignoreEndpoint(reason string) {
	v.Ignored = fmt.Sprintf("%s is ignored because %s", v.From, reason)
	v.Endpoint = endpoint.URL{}
	v.From = ""
}

var endpoints = endpoint.Form{
	What:    "OTLP endpoint (not shown, since it may hold a key)",
	Hint:    "use http://host:4318/v1/metrics, https://host/v1/metrics or unix:///path/of/socket",
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

// parseBaseEndpoint parses a base URL for all signals, and returns the URL for metrics below it.
func parseBaseEndpoint(text string) (endpoint.URL, error) {
	e, err := endpoints.Parse(text)
	if err != nil {
		return endpoint.URL{}, err
	}
	return e.Below(metricsPath), nil
}

// parseMetricsEndpoint parses a URL for metrics. According to OpenTelemetry's specification, a URL without a path has
// the path "/". The URL of a Unix socket contains only the path of the socket, so its HTTP path is /v1/metrics.
func parseMetricsEndpoint(text string) (endpoint.URL, error) {
	e, err := endpoints.Parse(text)
	if err != nil {
		return endpoint.URL{}, err
	}
	switch {
	case e.Network == "unix":
		return e.Below(metricsPath), nil
	case e.Path() == "":
		return e.Below("/"), nil
	}
	return e, nil
}

// parseTimeout parses a number of milliseconds. It returns an error if the number is not positive, or more than
// longestTimeout.
func parseTimeout(text string) (time.Duration, error) {
	limit := longestTimeout.Milliseconds()
	milliseconds, err := strconv.ParseInt(text, 10, 64)
	isInRange := 0 < milliseconds && milliseconds <= limit
	if err != nil || !isInRange {
		return 0, fmt.Errorf("%q is not a number of milliseconds from 1 to %d", text, limit)
	}
	return time.Duration(milliseconds) * time.Millisecond, nil
}

func parseCompression(text string) (gzip bool, err error) {
	if text != "gzip" && text != "none" {
		err = fmt.Errorf("%q is neither gzip nor none", text)
	}
	return text == "gzip", err
}

// newTLSConfig returns a TLS configuration with the certificate authorities and the client certificate in the files
// that v names, if any. It returns an error if a file is missing or invalid.
func newTLSConfig(v *Variables) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var errs error
	if v.Certificate != "" {
		config.RootCAs, errs = check.Authorities("certificates of authorities", v.Certificate)
	}
	if v.ClientCert != "" || v.ClientKey != "" {
		errs = errors.Join(errs, addClientCertificate(config, v.ClientCert, v.ClientKey))
	}
	return config, errs
}

// addClientCertificate makes config use the client certificate in certificateFile with the key in keyFile. It
// returns an error if a name is empty, or if the files can't be read now. Each connection reads the files again, so
// that the certificate can be renewed while the daemon runs.
func addClientCertificate(config *tls.Config, certificateFile, keyFile string) error {
	if certificateFile == "" || keyFile == "" {
		return fmt.Errorf("read client certificate: "+
			"set both %[1]sCLIENT_CERTIFICATE and %[1]sCLIENT_KEY, or none", generalPrefix)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certificateFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("read client certificate: %w", err)
		}
		return &pair, nil
	}
	_, err := config.GetClientCertificate(nil)
	return err
}

// Temporality determines which spans a point counts: those of its window, or all since its series
// began.
type Temporality string

const (
	Delta      Temporality = "delta"
	Cumulative Temporality = "cumulative"
)

// parsePreference parses a temporality preference of OpenTelemetry, ignoring case. The preference "lowmemory"
// results in Delta, because it means delta for counters and histograms.
func parsePreference(text string) (Temporality, error) {
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

// parseHeaders parses a comma-separated list of name=value pairs, whose values are percent-encoded. The error
// describes each invalid pair, without its value, which can be secret.
func parseHeaders(text string) (Headers, error) {
	all := http.Header{}
	var errs error
	for i, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, escaped, isPair := strings.Cut(pair, "=")
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if !isPair || !isHeaderName(name) {
			errs = errors.Join(errs, fmt.Errorf("parse headers: entry %d is not name=value", i+1))
			continue
		}
		value, err := parseHeaderValue(name, strings.TrimSpace(escaped))
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		all.Set(name, value)
	}
	if errs != nil {
		return Headers{}, errs
	}
	return Headers{all}, nil
}

// parseHeaderValue decodes the percent-encoded value of a header. It returns an error if the value is invalid, or
// if the name is in ownHeaders, the headers that only the exporter may set.
func parseHeaderValue(name, escaped string) (string, error) {
	if slices.Contains(ownHeaders, name) {
		return "", fmt.Errorf("parse headers: %s is set by the daemon", name)
	}
	value, err := url.PathUnescape(escaped)
	if err != nil || !isHeaderText(value) {
		return "", fmt.Errorf("parse headers: the value of %s is not valid in a header; "+
			"percent-encode it, for example a space as %%20", name)
	}
	return value, nil
}

// isHeaderName reports whether name is a valid header name.
func isHeaderName(name string) bool {
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
