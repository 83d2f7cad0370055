package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLicenses_AreUpToDate: THIRD_PARTY_LICENSES in the repository is
// up to date with the linked modules and their versions. Every archive and the image contain
// that file.
func TestLicenses_AreUpToDate(t *testing.T) {
	var want bytes.Buffer
	if err := write(&want, ".."); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../THIRD_PARTY_LICENSES")
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("the programs link other modules than THIRD_PARTY_LICENSES has: run make licenses, and look "+
			"at the difference (%v)", err)
	}
	for _, module := range []string{
		"github.com/prometheus/client_golang ", "golang.org/x/sys ",
		"library of Go",
	} {
		if !strings.Contains(want.String(), module) {
			t.Errorf("%s is not in it", module)
		}
	}
	for _, carries := range []string{"../../deploy/dist.sh", "../../deploy/Containerfile"} {
		if text, err := os.ReadFile(carries); !strings.Contains(string(text), "THIRD_PARTY_LICENSES ") {
			t.Errorf("%s does not copy the licenses of others (%v)", carries, err)
		}
	}
}

// TestLicenses_MissingIsAnError: a module without a license file needs a manual check.
func TestLicenses_MissingIsAnError(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{"README.md", "license_test.go", "LICENSES.go"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := terms(directory); err == nil {
		t.Errorf("took %v for terms", files)
	}
	if err := os.WriteFile(filepath.Join(directory, "COPYING"), []byte("terms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if files, err := terms(directory); err != nil || len(files) != 1 || files[0].text != "terms" {
		t.Errorf("found %v, %v", files, err)
	}
}
