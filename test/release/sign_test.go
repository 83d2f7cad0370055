package release

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
)

const password = "correct horse"

// program builds tools/sign.
func program(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "sign")
	build := exec.Command("go", "build", "-o", out, "./sign")
	build.Dir = "../../tools"
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build tools/sign: %v\n%s", err, text)
	}
	return out
}

// newKey writes a new key, encrypted in cosign's format or unencrypted.
func newKey(t *testing.T, isEncrypted bool) (file string, public *ecdsa.PublicKey) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "PRIVATE KEY", Bytes: der}
	if isEncrypted {
		block.Type = "ENCRYPTED SIGSTORE PRIVATE KEY"
		if block.Bytes, err = encrypted.Encrypt(der, []byte(password)); err != nil {
			t.Fatal(err)
		}
	}
	file = filepath.Join(t.TempDir(), "cosign.key")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, &private.PublicKey
}

// check verifies a file with its bundle and the public key alone.
func check(t *testing.T, file string, public *ecdsa.PublicKey) (*verify.VerificationResult, error) {
	t.Helper()
	verifier, err := signature.LoadECDSAVerifier(public, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	trusted := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(verifier, time.Time{}, time.Time{}), nil
	})
	by, err := verify.NewVerifier(trusted, verify.WithNoObserverTimestamps())
	if err != nil {
		t.Fatal(err)
	}
	signed, err := bundle.LoadJSONFromPath(file + ".sigstore.json")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if signed.GetDsseEnvelope() != nil {
		return by.Verify(signed, verify.NewPolicy(verify.WithoutArtifactUnsafe(), verify.WithKey()))
	}
	return by.Verify(signed,
		verify.NewPolicy(verify.WithArtifact(bytes.NewReader(content)), verify.WithKey()))
}

// checkProvenance verifies a provenance and checks that it lists exactly these files with their
// checksums.
func checkProvenance(t *testing.T, file string, public *ecdsa.PublicKey, files []string, commit string) {
	t.Helper()
	result, err := check(t, file, public)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	statement := result.Statement
	if statement.GetPredicateType() != "https://slsa.dev/provenance/v1" || len(statement.GetSubject()) != len(files) {
		t.Fatalf("%s has %d subjects, want %d, and is %s", file, len(statement.GetSubject()), len(files),
			statement.GetPredicateType())
	}
	for i, of := range files {
		content, err := os.ReadFile(of)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if got := statement.GetSubject()[i]; got.GetName() != filepath.Base(of) ||
			got.GetDigest()["sha256"] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: a subject is %s %s", of, got.GetName(), got.GetDigest())
		}
	}
	text, err := json.Marshal(statement.GetPredicate().AsMap())
	if err != nil || !strings.Contains(string(text), `"gitCommit":"`+commit+`"`) {
		t.Errorf("%s does not contain the commit %s: %s, %v", file, commit, text, err)
	}
}

// TestSign_FilesVerify checks that files and their provenance, signed with keys in cosign's format,
// verify with sigstore's library, and that modified ones do not.
func TestSign_FilesVerify(t *testing.T) {
	sign := program(t)
	for name, isEncrypted := range map[string]bool{"a key of cosign": true, "a key in the open": false} {
		t.Run(name, func(t *testing.T) {
			key, public := newKey(t, isEncrypted)
			dir := t.TempDir()
			files := []string{filepath.Join(dir, "a.tar.gz"), filepath.Join(dir, "b.tgz")}
			for _, file := range files {
				if err := os.WriteFile(file, []byte("of "+file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			provenance := filepath.Join(dir, "provenance.json")
			signWith := func(args ...string) {
				cmd := exec.Command(sign, args...)
				cmd.Env = append(os.Environ(), "SIGN_KEY="+key, "COSIGN_PASSWORD="+password)
				if text, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("sign %q: %v\n%s", args, err, text)
				}
			}
			signWith(append([]string{
				"-version", "1.2.3", "-commit", "c0ffee", "-go", "go1.26", "-provenance",
				provenance,
			}, files...)...)
			signWith(append([]string{provenance}, files...)...)
			for _, file := range files {
				if _, err := check(t, file, public); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
			checkProvenance(t, provenance, public, files, "c0ffee")
			_, stranger := newKey(t, false)
			if _, err := check(t, files[0], stranger); err == nil {
				t.Error("another's key verifies a file")
			}
			if _, err := check(t, provenance, stranger); err == nil {
				t.Error("another's key verifies the provenance")
			}
			if err := os.WriteFile(files[0], []byte("changed"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := check(t, files[0], public); err == nil {
				t.Error("a changed file verifies")
			}
		})
	}
}

// TestProvenance_IsReproducible checks that the same files result in the same bytes.
func TestProvenance_IsReproducible(t *testing.T) {
	sign, dir := program(t), t.TempDir()
	file := filepath.Join(dir, "a")
	if err := os.WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	var made [2][]byte
	for i := range made {
		out := filepath.Join(dir, "provenance")
		if text, err := exec.Command(sign, "-commit", "1", "-provenance", out,
			file).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		made[i], _ = os.ReadFile(out)
	}
	if len(made[0]) == 0 || !bytes.Equal(made[0], made[1]) {
		t.Errorf("twice made: %s and %s", made[0], made[1])
	}
}

// TestSign_InvalidKeys checks the error messages for invalid keys.
func TestSign_InvalidKeys(t *testing.T) {
	sign := program(t)
	key, _ := newKey(t, true)
	for name, test := range map[string]struct{ key, password, want string }{
		"none":           {"", "", "SIGN_KEY names no file"},
		"not there":      {filepath.Join(t.TempDir(), "none"), "", "no such file"},
		"no key":         {sign, "", "no PEM file"},
		"wrong password": {key, "wrong", "COSIGN_PASSWORD"},
	} {
		cmd := exec.Command(sign, sign)
		cmd.Env = append(os.Environ(), "SIGN_KEY="+test.key, "COSIGN_PASSWORD="+test.password)
		if text, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(text), test.want) {
			t.Errorf("%s: %v, %s, want %q", name, err, text, test.want)
		}
	}
}
