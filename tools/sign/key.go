package main

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// key is the private key that signs a release. Users verify signatures with its public half.
type key struct {
	private *ecdsa.PrivateKey
	hint    string // identifies the public key
}

// readKey reads a key written by `cosign generate-key-pair`, or an unencrypted PKCS #8 key.
func readKey(file string, password []byte) (*key, error) {
	if file == "" {
		return nil, errors.New("read key: SIGN_KEY names no file; `cosign generate-key-pair` makes one")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("read key %s: it is no PEM file", file)
	}
	der := block.Bytes
	if strings.HasPrefix(block.Type, "ENCRYPTED ") {
		if der, err = encrypted.Decrypt(der, password); err != nil {
			return nil, fmt.Errorf("decrypt key %s with COSIGN_PASSWORD: %w", file, err)
		}
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("parse key %s: %w", file, err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("parse key %s: a %T, where ECDSA is used, as cosign does", file, parsed)
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	sum := sha256.Sum256(public)
	return &key{private: private, hint: base64.StdEncoding.EncodeToString(sum[:])}, nil
}
