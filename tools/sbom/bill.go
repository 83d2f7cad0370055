package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// library describes a module. Go's checksum is a property, because it covers a list of files,
// and CycloneDX does not define its algorithm.
func library(path, version, sum string) cdx.Component {
	c := cdx.Component{
		Type: cdx.ComponentTypeLibrary, Name: path, Version: version,
		BOMRef: purl(path, version),
	}
	c.PackageURL = c.BOMRef
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: sum}}
	}
	return c
}

// purl returns the package URL of a module, which is in lower case.
func purl(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// newBill returns a bill of materials with sorted parts. Its serial number is a hash of its
// content, so that the same binary always has the same bill.
func newBill(self cdx.Component, parts []cdx.Component, edges map[string]map[string]bool) *cdx.BOM {
	slices.SortFunc(parts, func(a, b cdx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	var dependencies []cdx.Dependency
	for _, c := range append([]cdx.Component{self}, parts...) {
		d := cdx.Dependency{Ref: c.BOMRef}
		if required := slices.Sorted(maps.Keys(edges[c.BOMRef])); len(required) > 0 {
			d.Dependencies = &required
		}
		dependencies = append(dependencies, d)
	}
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{Component: &self}
	b.Components, b.Dependencies = &parts, &dependencies
	text, err := json.Marshal(b)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	s := sha256.Sum256(text)
	s[6], s[8] = s[6]&0x0f|0x80, s[8]&0x3f|0x80 // a UUID of version 8, with custom content
	b.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", s[0:4], s[4:6], s[6:8], s[8:10], s[10:16])
	return b
}
