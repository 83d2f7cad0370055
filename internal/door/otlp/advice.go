package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// advised says to an operator what to do about a destination that did not answer, where the error
// shows it.
func advised(err error) error {
	var unknown x509.UnknownAuthorityError
	var misnamed x509.HostnameError
	var invalid x509.CertificateInvalidError
	var noTLS tls.RecordHeaderError
	var op *net.OpError
	what := ""
	switch {
	case errors.As(err, &unknown):
		what = "give the certificate of its authority with --otlp-forward-ca"
	case errors.As(err, &misnamed):
		what = "name it in --otlp-forward as its certificate does"
	case errors.As(err, &invalid):
		what = "have its certificate renewed, or look at the clock"
	case errors.As(err, &noTLS), errors.Is(err, http.ErrSchemeMismatch):
		what = "it speaks no TLS there: give http:// or grpc:// in --otlp-forward, or its port for TLS"
	case errors.As(err, &op) && op.Op == "remote error": // crypto/tls's name for an alert that came
		what = "look at its log: it ended TLS. A certificate of its clients, if it asks for one, is not shown"
	case errors.As(err, &op) && op.Op == "dial":
		what = "look whether it runs, and listens where --otlp-forward says"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, what)
}
