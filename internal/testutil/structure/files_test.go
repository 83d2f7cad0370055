package structure

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxTrackedSize is the maximum size in bytes of a committed file that is not in largeFiles.
const maxTrackedSize = 1 << 20

// largeFiles contains the committed files that may be larger.
var largeFiles = map[string]bool{}

func TestTrackedFiles_AreSmall(t *testing.T) {
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("this is not a git checkout, so no file is tracked")
	}
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatalf("list tracked files: %v", err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted in the working tree
		}
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > maxTrackedSize && !largeFiles[name] {
			t.Errorf("%s is tracked and has %d bytes: remove it from git, or list it in largeFiles", name, info.Size())
		}
	}
}

func TestArchitecturePage_NamesExistingPaths(t *testing.T) {
	const page = "docs/architecture.md"
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	paths := regexp.MustCompile("`((?:internal|cmd|client|test|tools|lab)/[^` ]*)`").FindAllSubmatch(text, -1)
	if len(paths) < 30 {
		t.Fatalf("only %d paths were found in %s", len(paths), page)
	}
	for _, found := range paths {
		if _, err := os.Stat(filepath.Join(root, string(found[1]))); err != nil {
			t.Errorf("%s names a path that does not exist: %v", page, err)
		}
	}
}

func TestClientsPage_NamesExistingTests(t *testing.T) {
	const page = "docs/design/opentelemetry-clients.md"
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)`([^` ]+) ([^`]+)` \\|$").FindAllSubmatch(text, -1)
	if len(rows) < 40 {
		t.Fatalf("only %d tests were found in %s", len(rows), page)
	}
	for _, row := range rows {
		file, name := string(row[1]), string(row[2])
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Errorf("%s names a file that does not exist: %v", page, err)
			continue
		}
		names := []string{name}
		if strings.HasPrefix(name, "Test") { // may be followed by a subtest
			names = strings.Split(name, "/")
		}
		for _, part := range names {
			if !strings.Contains(string(source), part) {
				t.Errorf("%s names %q, which is not in %s", page, name, file)
			}
		}
	}
}
