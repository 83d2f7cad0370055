package main

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// bundleType is the format that cosign writes and sigstore's libraries read.
const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// statementPayload is the media type of an in-toto statement in an envelope.
const statementPayload = "application/vnd.in-toto+json"

// bundle is a signature with a hint of its key, and with the statement if one was signed.
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

// sign returns the bundle of a file. An in-toto statement is included in an envelope; for any
// other file, the bundle contains only the signature.
func (k *key) sign(content []byte) ([]byte, error) {
	b := bundle{MediaType: bundleType}
	b.Material.PublicKey.Hint = k.hint
	var statement struct {
		Type string `json:"_type"`
	}
	if json.Unmarshal(content, &statement) == nil && statement.Type == statementType {
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
