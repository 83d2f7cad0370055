// Command sbom writes the software bill of materials of a Go binary as CycloneDX JSON: every
// module recorded in the binary, with its checksum, and the dependencies among them from the
// module graph.
//
//	go mod graph | sbom 1.2.3 dist/linux-amd64/spanstatsd > sbom.cdx.json
//
// The output depends only on the binary and the graph.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, graph io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("want a version and a binary, got %q", args)
	}
	info, err := buildinfo.ReadFile(args[1])
	if err != nil {
		return fmt.Errorf("read build information: %w", err)
	}
	binary, err := os.ReadFile(args[1])
	if err != nil {
		return fmt.Errorf("read binary: %w", err)
	}
	sum := sha256.Sum256(binary)
	b, err := describe(args[0], hex.EncodeToString(sum[:]), info, graph)
	if err != nil {
		return err
	}
	return cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(b, cdx.SpecVersion1_6)
}

// describe returns the bill of materials of a binary.
func describe(version, sum string, info *debug.BuildInfo, graph io.Reader) (*cdx.BOM, error) {
	self := library(info.Main.Path, version, "")
	self.Type = cdx.ComponentTypeApplication
	self.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}
	self.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	parts := []cdx.Component{library("stdlib", info.GoVersion, "")}
	references := map[string]string{info.Main.Path: self.BOMRef}
	for _, module := range info.Deps {
		part := library(module.Path, module.Version, module.Sum)
		parts = append(parts, part)
		references[module.Path] = part.BOMRef
	}
	edges, err := readGraph(graph, references)
	if err != nil {
		return nil, err
	}
	return newBill(self, parts, edges), nil
}
