package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLayer_SystemTarUnpacks: the archive contains the copied files completely. The
// test unpacks it with the system's tar, because Go's tar reader accepts a layer without a
// trailer.
func TestLayer_SystemTarUnpacks(t *testing.T) {
	dir := place(t, 0o755)
	program := bytes.Repeat([]byte("a program whose last block is not full. "), 1000)
	for _, name := range []string{"program-amd64", "program-arm64"} {
		if err := os.WriteFile(filepath.Join(dir, name), program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build(t, dir)
	layout := t.TempDir()
	unpack(t, filepath.Join(dir, "out.tar"), layout)
	layers := 0
	for _, blob := range blobs(t, layout) {
		body, err := os.ReadFile(blob)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
			continue // a manifest or a configuration: only layers are compressed
		}
		layers++
		root := t.TempDir()
		unpack(t, blob, root)
		unpacked, err := os.ReadFile(filepath.Join(root, "bin", "program"))
		if err != nil || !bytes.Equal(unpacked, program) {
			t.Errorf("of a program of %d bytes, tar unpacks %d: %v", len(program), len(unpacked), err)
		}
	}
	if layers != 1 {
		t.Errorf("%d layers, where both architectures have the same program", layers)
	}
}

// blobs returns the files that the index of an OCI layout refers to.
func blobs(t *testing.T, layout string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(layout, "blobs", "sha256", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// unpack unpacks a file with the system's tar. Warnings of tar are errors.
func unpack(t *testing.T, archive, into string) {
	t.Helper()
	out, err := exec.Command("tar", "-xf", archive, "-C", into).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("tar -xf %s: %v, %s", filepath.Base(archive), err, out)
	}
}
