package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

const (
	repository    = "git+https://github.com/spanstatsd/spanstatsd"
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = "https://github.com/spanstatsd/spanstatsd/blob/main/" +
		"docs/install.md#verify-a-release"
)

// origin describes the source of a release's files and how they were built.
type origin struct{ version, commit, compiler, builder string }

// statement is an in-toto statement with an SLSA provenance predicate.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type predicate struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]string `json:"externalParameters"`
	ResolvedDependencies []resource        `json:"resolvedDependencies"`
}

type runDetails struct {
	Builder struct {
		ID string `json:"id"`
	} `json:"builder"`
}

// statement returns the statement about the given files. The modules of a program are not part
// of it: they are in its bill of materials, which is one of the files.
func (o *origin) statement(files []string) ([]byte, error) {
	s := statement{Type: statementType, PredicateType: predicateType}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read file of the release: %w", err)
		}
		sum := sha256.Sum256(content)
		s.Subject = append(s.Subject, resource{
			Name:   filepath.Base(file),
			Digest: map[string]string{"sha256": hex.EncodeToString(sum[:])},
		})
	}
	s.Predicate.BuildDefinition = buildDefinition{
		BuildType:          buildType,
		ExternalParameters: map[string]string{"source": repository, "target": "dist", "version": o.version},
		ResolvedDependencies: []resource{
			{URI: repository, Digest: map[string]string{"gitCommit": o.commit}},
			{URI: "https://go.dev/dl/?mode=json&include=all#" + o.compiler, Name: o.compiler},
		},
	}
	s.Predicate.RunDetails.Builder.ID = o.builder
	text, err := json.MarshalIndent(&s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode statement: %w", err)
	}
	return text, nil
}
