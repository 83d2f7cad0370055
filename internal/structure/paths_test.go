package structure

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestThePathsInTheArchitectureAreThere: a stranger who asks where something is added is
// sent to a file or a folder that exists.
func TestThePathsInTheArchitectureAreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, walkDocument))
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile("`((?:internal|cmd|client|test|tools|lab)/[^` ]*)`").FindAllSubmatch(text, -1)
	if len(paths) < 50 {
		t.Fatalf("%d paths were found in %s; there are more", len(paths), walkDocument)
	}
	for _, path := range paths {
		if _, err := os.Stat(filepath.Join(root, string(path[1]))); err != nil {
			t.Errorf("%s sends its reader to %s: %v", walkDocument, path[1], err)
		}
	}
}
