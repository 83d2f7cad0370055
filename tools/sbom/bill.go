package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// bill is the part of CycloneDX 1.6 that is used here.
type bill struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Serial       string       `json:"serialNumber,omitempty"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Reference  string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License named `json:"license"`
}

type named struct {
	ID string `json:"id"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Reference string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// library is a module. Go's checksum is over a list of files, none of the
// algorithms that the format knows, and stands as a property.
func library(path, version, sum string) component {
	c := component{Type: "library", Name: path, Version: version, Reference: purl(path, version)}
	c.PURL = c.Reference
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}}
	}
	return c
}

// purl names a module the way package URLs do: in small letters.
func purl(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// newBill puts the parts in order. Its number is made from what it says.
func newBill(self component, parts []component, edges map[string]map[string]bool) *bill {
	b := &bill{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{self}, Components: parts}
	slices.SortFunc(b.Components, func(a, b component) int { return strings.Compare(a.Reference, b.Reference) })
	for _, c := range append([]component{self}, b.Components...) {
		b.Dependencies = append(b.Dependencies, dependency{c.Reference, slices.Sorted(maps.Keys(edges[c.Reference]))})
	}
	text, err := json.Marshal(b)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	s := sha256.Sum256(text)
	s[6], s[8] = s[6]&0x0f|0x80, s[8]&0x3f|0x80 // a UUID of version 8: made from anything
	b.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", s[0:4], s[4:6], s[6:8], s[8:10], s[10:16])
	return b
}
