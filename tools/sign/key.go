package main

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// bundleType is the format that cosign writes and sigstore's libraries read.
const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// statementPayload is the type of a statement of in-toto in an envelope.
const statementPayload = "application/vnd.in-toto+json"

// key signs for a release. Whoever checks is given its public half.
type key struct {
	private *ecdsa.PrivateKey
	hint    string // tells the public key from others
}

// readKey reads what `cosign generate-key-pair` wrote, or a PKCS #8 key that is not encrypted.
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

type bundle struct {
	MediaType string   `json:"mediaType"`
	Material  material `json:"verificationMaterial"`
	Message   *message `json:"messageSignature,omitempty"`
	Envelope  any      `json:"dsseEnvelope,omitempty"`
}

type material struct {
	PublicKey struct {
		Hint string `json:"hint"`
	} `json:"publicKey"`
}

type message struct {
	Digest struct {
		Algorithm string `json:"algorithm"`
		Digest    []byte `json:"digest"`
	} `json:"messageDigest"`
	Signature []byte `json:"signature"`
}

type envelope struct {
	Payload     []byte      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	Sig []byte `json:"sig"`
}

// sign makes the bundle of a file: a statement of in-toto goes whole into an envelope, and any other
// file beside its signature.
func (k *key) sign(content []byte) ([]byte, error) {
	b := bundle{MediaType: bundleType}
	b.Material.PublicKey.Hint = k.hint
	var said struct {
		Type string `json:"_type"`
	}
	if json.Unmarshal(content, &said) == nil && said.Type == statementType {
		sig, _, err := k.signature(dsse.PAE(statementPayload, content))
		if err != nil {
			return nil, err
		}
		b.Envelope = envelope{content, statementPayload, []signature{{sig}}}
		return json.Marshal(&b)
	}
	m := &message{}
	m.Digest.Algorithm = "SHA2_256"
	var err error
	m.Signature, m.Digest.Digest, err = k.signature(content)
	b.Message = m
	if err != nil {
		return nil, err
	}
	return json.Marshal(&b)
}

func (k *key) signature(content []byte) (signature, digest []byte, err error) {
	sum := sha256.Sum256(content)
	signature, err = ecdsa.SignASN1(rand.Reader, k.private, sum[:])
	return signature, sum[:], err
}
