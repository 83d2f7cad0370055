package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// place creates a context with a program and a text file. mode depends on a umask.
func place(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "program-amd64"), []byte("amd"), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "program-arm64"), []byte("arm"), mode); err != nil {
		t.Fatal(err)
	}
	steps := "# a comment\nFROM scratch\nARG TARGETARCH\nCOPY program-${TARGETARCH} /bin/program\nUSER " +
		"1:2\nEXPOSE 80\nENTRYPOINT [\"/bin/program\"]\nCMD [\"run\"]\n"
	if err := os.WriteFile(filepath.Join(dir, "Containerfile"), []byte(steps), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func build(t *testing.T, dir string) []byte {
	t.Helper()
	o := options{
		containerfile: filepath.Join(dir, "Containerfile"), context: dir, version: "1",
		architectures: "amd64,arm64", out: filepath.Join(dir, "out.tar"), epoch: 1700000000,
	}
	if err := o.build(); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// files returns the files of a tar archive by name.
func files(t *testing.T, archive io.Reader) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if err == io.EOF {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.ModTime.Unix() != 1700000000 {
			t.Errorf("%s belongs to %d and is of %s", header.Name, header.Uid, header.ModTime)
		}
		if found[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestImage_IsReproducible: the image does not depend on the folder or the umask of a build.
func TestImage_IsReproducible(t *testing.T) {
	if !bytes.Equal(build(t, place(t, 0o755)), build(t, place(t, 0o700))) {
		t.Error("two builds of the same files differ")
	}
}

// TestLayout follows the references of an archive from its index to the program of each
// architecture.
func TestLayout(t *testing.T) {
	blobs := files(t, bytes.NewReader(build(t, place(t, 0o755))))
	var follow func(d descriptor, architecture string)
	seen := map[string]string{}
	follow = func(d descriptor, architecture string) {
		blob := blobs["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if digest(blob) != d.Digest || len(blob) != d.Size {
			t.Fatalf("%s: the blob does not match its digest", d.Digest)
		}
		switch d.MediaType {
		case mediaIndex, mediaManifest:
			var below struct {
				Manifests, Layers []descriptor
				Config            descriptor
			}
			if err := json.Unmarshal(blob, &below); err != nil {
				t.Fatal(err)
			}
			for _, m := range below.Manifests {
				follow(m, m.Platform["architecture"])
			}
			for _, l := range below.Layers {
				follow(below.Config, architecture)
				follow(l, architecture)
			}
		case mediaConfig:
			want := `"config":{"User":"1:2","ExposedPorts":{"80/tcp":{}},` +
				`"Entrypoint":["/bin/program"],"Cmd":["run"]}`
			if !bytes.Contains(blob, []byte(want)) ||
				!bytes.Contains(blob, []byte(`"architecture":"`+architecture+`"`)) {
				t.Errorf("configuration of %s: %s", architecture, blob)
			}
		case mediaLayer:
			unzipped, err := gzip.NewReader(bytes.NewReader(blob))
			if err != nil {
				t.Fatal(err)
			}
			seen[architecture] = string(files(t, unzipped)["bin/program"])
		}
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(blobs["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	follow(index.Manifests[0], "")
	if len(seen) != 2 || seen["amd64"] != "amd" || seen["arm64"] != "arm" {
		t.Errorf("programs found: %v", seen)
	}
}

// TestSteps_UnknownIsRejected: an unknown step is an error, and not ignored.
func TestSteps_UnknownIsRejected(t *testing.T) {
	for _, step := range []string{
		"RUN make", "FROM debian", "COPY a b /c", "COPY a relative", "ARG OTHER",
		"COPY --chown=1 a /b", "ADD a /b",
	} {
		if _, err := parse(step, map[string]string{"TARGETARCH": "amd64"}); err == nil ||
			!strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v", step, err)
		}
	}
}
