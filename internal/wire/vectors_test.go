package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false,
	"rewrite testdata/vectors.json from the tables in this package's tests")

const vectorsFile = "testdata/vectors.json"

// vector is one frame and its meaning. Both are written by hand in the tables, without the functions of this package.
type vector struct {
	Name      string `json:"name"`
	About     string `json:"about"`
	Canonical bool   `json:"canonical,omitempty"` // encoding the meaning returns exactly these bytes
	Malformed bool   `json:"malformed,omitempty"` // a decoder must return an error
	Type      string `json:"type,omitempty"`
	Meaning   obj    `json:"meaning,omitempty"`
	Frame     string `json:"frame"` // the frame with its header, in hex
}

type obj map[string]any

// bytesOf returns the bytes of the frame.
func (v vector) bytesOf(t testing.TB) []byte {
	frame, err := hex.DecodeString(v.Frame)
	if err != nil {
		t.Fatalf("decode frame of %s: %v", v.Name, err)
	}
	return frame
}

// raw concatenates hex digits, and texts that begin with a quote: raw("a2", "'ab").
func raw(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		if text, ok := strings.CutPrefix(part, "'"); ok {
			b.WriteString(hex.EncodeToString([]byte(text)))
		} else {
			b.WriteString(strings.ReplaceAll(part, " ", ""))
		}
	}
	return b.String()
}

// framed prepends the length to a message.
func framed(parts ...string) string {
	message := raw(parts...)
	return fmt.Sprintf("%08x", len(message)/2) + message
}

// allVectors returns all test vectors, in the order of the file.
func allVectors() []vector {
	return slices.Concat(coldVectors, defineVectors, spansVectors, keyVectors, widthVectors, malformedVectors)
}

func TestVectors_FileMatchesTables(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("[\n")
	for i, v := range allVectors() {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("encode vector %s: %v", v.Name, err)
		}
		if i > 0 {
			b.WriteString(",\n")
		}
		b.Write(line)
	}
	b.WriteString("\n]\n")
	if *update {
		if err := os.MkdirAll(filepath.Dir(vectorsFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(vectorsFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatalf("read vectors: %v; run go test -run Vectors -update", err)
	}
	if !bytes.Equal(file, b.Bytes()) {
		t.Errorf("%s differs from the tables; run go test -run Vectors -update and look at the difference",
			vectorsFile)
	}
}

func TestVectors_UniqueNames(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range allVectors() {
		if seen[v.Name] {
			t.Errorf("two vectors are named %s", v.Name)
		}
		seen[v.Name] = true
	}
}

// loadVectors reads the file, as a client in another language would.
func loadVectors(t testing.TB) []vector {
	file, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatalf("read vectors: %v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(file))
	decoder.UseNumber()
	var vectors []vector
	if err := decoder.Decode(&vectors); err != nil {
		t.Fatalf("decode vectors: %v", err)
	}
	return vectors
}

func TestVectors_DecodeToTheirMeaning(t *testing.T) {
	for _, v := range loadVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			frame := v.bytesOf(t)
			if got := int(FrameLength(frame)); got != len(frame)-HeaderLen {
				t.Fatalf("the frame's length says %d, %d bytes follow", got, len(frame)-HeaderLen)
			}
			kind, meaning, err := meaningOf(frame[HeaderLen:])
			if v.Malformed {
				if !errors.Is(err, ErrMalformed) {
					t.Fatalf("decoded to %v with error %v, want ErrMalformed", meaning, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("decode: %v", err)
			}
			if kind.String() != v.Type {
				t.Errorf("type %s, want %s", kind, v.Type)
			}
			if got, want := asJSON(t, meaning), asJSON(t, v.Meaning); got != want {
				t.Errorf("meaning\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestVectors_CanonicalReencodeByteForByte(t *testing.T) {
	canonical := 0
	for _, v := range loadVectors(t) {
		if !v.Canonical {
			continue
		}
		canonical++
		frame := v.bytesOf(t)
		// Appending to other bytes detects a function that writes a length at the wrong position.
		prefix := []byte("already there")
		got, err := reencode(slices.Clone(prefix), frame[HeaderLen:])
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if want := append(prefix, frame...); !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x\nwant %x", v.Name, got, want)
		}
	}
	if canonical == 0 {
		t.Error("no vector is canonical")
	}
}

func asJSON(t testing.TB, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encode meaning: %v", err)
	}
	return string(b)
}
