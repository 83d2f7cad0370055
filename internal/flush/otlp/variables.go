package otlp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Variables are the settings that OpenTelemetry's variables have. Each has a general form,
// OTEL_EXPORTER_OTLP_TIMEOUT, and one for metrics, OTEL_EXPORTER_OTLP_METRICS_TIMEOUT,
// which goes before it.
type Variables struct {
	Endpoint    Endpoint // none where no variable names one
	From        string   // the variable that does
	Headers     Headers
	Timeout     time.Duration // 0 where none is set
	Compress    bool
	Certificate string // file of those that the receiver's certificate is checked by
	ClientCert  string // files of our own certificate, and of its key
	ClientKey   string

	Preference Temporality // empty where no variable says
}

const (
	generalPrefix = "OTEL_EXPORTER_OTLP_"
	metricsPrefix = "OTEL_EXPORTER_OTLP_METRICS_"
)

// longestTimeout bounds the time of one request, so that it ends within a stop's grace or
// little later.
const longestTimeout = time.Minute

// ReadVariables reads them. It returns all that is wrong, and has read the rest.
func ReadVariables(getenv func(string) string) (v Variables, err error) {
	look := func(name string) (variable, value string) {
		for _, prefix := range [...]string{metricsPrefix, generalPrefix} {
			if value = strings.TrimSpace(getenv(prefix + name)); value != "" {
				return prefix + name, value
			}
		}
		return "", ""
	}
	note := func(variable string, mistake error) {
		if mistake != nil {
			err = errors.Join(err, fmt.Errorf("read %s: %w", variable, mistake))
		}
	}
	if variable, text := look("ENDPOINT"); text != "" {
		var mistake error
		v.Endpoint, mistake = endpointOf(variable, text)
		v.From = variable
		note(variable, mistake)
	}
	if variable, text := look("HEADERS"); text != "" {
		var mistake error
		v.Headers, mistake = parseHeaders(text)
		note(variable, mistake)
	}
	if variable, text := look("TIMEOUT"); text != "" {
		var mistake error
		v.Timeout, mistake = parseTimeout(text)
		note(variable, mistake)
	}
	if variable, text := look("COMPRESSION"); text != "" {
		var mistake error
		v.Compress, mistake = parseCompression(text)
		note(variable, mistake)
	}
	if variable, text := look("PROTOCOL"); text != "" && text != "http/protobuf" && !v.Endpoint.IsZero() {
		note(variable, fmt.Errorf("%q is not spoken here; set it, or %sPROTOCOL, to http/protobuf, whose port is 4318", text, metricsPrefix))
	}
	if text := strings.TrimSpace(getenv(TemporalityVariable)); text != "" {
		var mistake error
		v.Preference, mistake = parsePreference(text)
		note(TemporalityVariable, mistake)
	}
	_, v.Certificate = look("CERTIFICATE")
	_, v.ClientCert = look("CLIENT_CERTIFICATE")
	_, v.ClientKey = look("CLIENT_KEY")
	return v, err
}

// endpointOf reads an endpoint as the specification has it: what is named for metrics is
// used as it is, and below a general one metrics have a path of their own. A socket
// has no path, so its metrics are where they are below any.
func endpointOf(variable, text string) (Endpoint, error) {
	e, err := parseEndpoint(text)
	switch {
	case err != nil:
		return Endpoint{}, err
	case e.socket != "" || !strings.HasPrefix(variable, metricsPrefix):
		return e.below(metricsPath), nil
	case e.url.Path == "":
		e.url.Path = "/"
	}
	return e, nil
}

// parseTimeout reads milliseconds, as the specification has it.
func parseTimeout(text string) (time.Duration, error) {
	most := longestTimeout.Milliseconds()
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n <= most {
		return time.Duration(n) * time.Millisecond, nil
	}
	return 0, fmt.Errorf("%q is no number of milliseconds from 1 to %d", text, most)
}

func parseCompression(text string) (gzip bool, err error) {
	switch text {
	case "gzip":
		return true, nil
	case "none":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither gzip nor none", text)
}
