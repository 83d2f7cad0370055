//go:build dist

package release

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDist_IsSigned checks a release built with SIGN_KEY, in the directory DIST, with the key file
// PUBLIC_KEY: each file verifies, the provenance lists all other files, and no promised file is
// missing.
func TestDist_IsSigned(t *testing.T) {
	dir := os.Getenv("DIST")
	public := readPublic(t, os.Getenv("PUBLIC_KEY"))
	all, err := filepath.Glob(filepath.Join(dir, "spanstatsd*"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	provenance := ""
	kinds := map[string]int{}
	for _, file := range all {
		if strings.HasSuffix(file, ".sigstore.json") {
			continue
		}
		if _, err := check(t, file, public); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if strings.HasSuffix(file, "_provenance.json") {
			provenance = file
			continue
		}
		files = append(files, file)
		for _, kind := range []string{
			"_amd64.tar.gz", "_arm64.tar.gz", "_chart.tgz", "_deploy.tar.gz", "_image.tar",
			"_THIRD_PARTY_LICENSES", "-py3-none-any.whl", "-opentelemetry-*.tgz",
			".sbom.cdx.json", ".sbom-lab.cdx.json",
		} {
			if isOfKind, err := filepath.Match("*"+kind, filepath.Base(file)); err != nil {
				t.Fatal(err)
			} else if isOfKind {
				kinds[kind]++
			}
		}
	}
	if len(kinds) != 10 || provenance == "" {
		t.Fatalf("the release has %v, and the provenance %q", kinds, provenance)
	}
	if _, err := check(t, filepath.Join(dir, "SHA256SUMS"), public); err != nil {
		t.Errorf("SHA256SUMS: %v", err)
	}
	checkProvenance(t, provenance, public, files, os.Getenv("COMMIT"))
}

func readPublic(t *testing.T, file string) *ecdsa.PublicKey {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s is no PEM file", file)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key.(*ecdsa.PublicKey)
}
