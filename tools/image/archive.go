package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor refers to a blob by its digest.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// archive is an OCI layout in one tar file: blobs by digest, and an index.
type archive struct {
	at        time.Time
	version   string
	blobs     map[string][]byte
	manifests []descriptor
}

func newArchive(at time.Time, version string) *archive {
	return &archive{at: at, version: version, blobs: map[string][]byte{}}
}

// add adds the image of one architecture: a layer, a configuration and a manifest.
func (a *archive) add(i *image, context, architecture string) error {
	layer, err := i.layer(context, a.at)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // cannot fail: the level is valid
	_, _ = zip.Write(layer)                                      // cannot fail: the writer is a buffer
	_ = zip.Close()
	config := map[string]any{
		"architecture": architecture, "os": "linux", "created": a.at.Format(time.RFC3339),
		"config": i.config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
		"history": []any{map[string]any{
			"created":    a.at.Format(time.RFC3339),
			"created_by": "deploy/Containerfile",
		}},
	}
	manifest := a.putJSON(mediaManifest, map[string]any{
		"schemaVersion": 2, "mediaType": mediaManifest,
		"config": a.putJSON(mediaConfig, config),
		"layers": []descriptor{a.put(mediaLayer, packed.Bytes())},
		"annotations": map[string]string{
			"org.opencontainers.image.title":    "spanstatsd",
			"org.opencontainers.image.version":  a.version,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source":   "https://github.com/spanstatsd/spanstatsd",
		},
	})
	manifest.Platform = map[string]string{"os": "linux", "architecture": architecture}
	a.manifests = append(a.manifests, manifest)
	return nil
}

// layer returns a tar of the files and their parent directories.
func (i *image) layer(context string, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{"/": true}
	for _, file := range slices.SortedFunc(slices.Values(i.files), func(a, b copied) int {
		return strings.Compare(a.to, b.to)
	}) {
		body, mode, err := read(context, file.from)
		if err != nil {
			return nil, err
		}
		for _, dir := range parents(file.to) {
			if !made[dir] {
				made[dir] = true
				_ = w.WriteHeader(&tar.Header{
					Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o755,
					ModTime: at,
				})
			}
		}
		if err := writeFile(w, file.to[1:], mode, at, body); err != nil {
			return nil, err
		}
	}
	// Close writes the padding of the last file and the trailer.
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write tar: %w", err)
	}
	return out.Bytes(), nil
}

// parents returns the parent directories of a path, outermost first.
func parents(name string) (dirs []string) {
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

func writeFile(w *tar.Writer, name string, mode int64, at time.Time, body []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(body)), ModTime: at}
	if err := w.WriteHeader(header); err != nil {
		return fmt.Errorf("write tar: %w", err)
	}
	_, err := w.Write(body)
	return err
}

func digest(blob []byte) string {
	sum := sha256.Sum256(blob)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (a *archive) put(media string, blob []byte) descriptor {
	name := digest(blob)
	a.blobs["blobs/sha256/"+strings.TrimPrefix(name, "sha256:")] = blob
	return descriptor{MediaType: media, Digest: name, Size: len(blob)}
}

func (a *archive) putJSON(media string, value any) descriptor { return a.put(media, encode(value)) }

// encode encodes JSON. Map keys are sorted.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return text
}

// write writes the archive to a file.
func (a *archive) write(name string) error {
	all := a.putJSON(mediaIndex, map[string]any{
		"schemaVersion": 2, "mediaType": mediaIndex,
		"manifests": a.manifests,
	})
	all.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": a.version,
		"io.containerd.image.name":          "spanstatsd:" + a.version,
	}
	files := maps.Clone(a.blobs)
	files["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	files["index.json"] = encode(map[string]any{
		"schemaVersion": 2, "mediaType": mediaIndex,
		"manifests": []descriptor{all},
	})
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if err := writeAll(file, files, a.at); err != nil {
		file.Close()
		return fmt.Errorf("write archive: %w", err)
	}
	return file.Close()
}

func writeAll(dst io.Writer, files map[string][]byte, at time.Time) error {
	w := tar.NewWriter(dst)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeFile(w, name, 0o644, at, files[name]); err != nil {
			return err
		}
	}
	return w.Close()
}
