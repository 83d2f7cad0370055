package otlp

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/check"
)

// tlsConfig reads the files with which a receiver is trusted and ours is shown. A
// certificate and its key are read again for each connection, so that they may be
// renewed while the daemon runs.
func tlsConfig(v *Variables) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	var mistakes error
	if v.Certificate != "" {
		pool, err := check.Authorities("certificates of authorities", v.Certificate)
		mistakes = errors.Join(mistakes, err)
		config.RootCAs = pool
	}
	switch {
	case (v.ClientCert == "") != (v.ClientKey == ""):
		mistakes = errors.Join(mistakes, fmt.Errorf("read client certificate: set both %sCLIENT_CERTIFICATE and %sCLIENT_KEY, or none", generalPrefix, generalPrefix))
	case v.ClientCert != "":
		read := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(v.ClientCert, v.ClientKey)
			if err != nil {
				return nil, fmt.Errorf("read client certificate: %w", err)
			}
			return &pair, nil
		}
		_, err := read(nil)
		mistakes = errors.Join(mistakes, err)
		config.GetClientCertificate = read
	}
	return config, mistakes
}
