package check

import (
	"crypto/x509"
	"fmt"
	"os"
)

// Authorities reads the certificates of certificate authorities from a PEM file. It returns an error if the
// file can't be read or contains no certificate. setting is the flag or variable that names the file, for
// error messages.
func Authorities(setting, file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", setting, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read %s: %s contains no PEM certificate", setting, file)
	}
	return pool, nil
}
