package check

import (
	"crypto/x509"
	"fmt"
	"os"
)

// Authorities reads a file with the PEM certificates of certificate authorities. It returns an error if the file contains
// none. setting is the name of the setting in the error.
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
