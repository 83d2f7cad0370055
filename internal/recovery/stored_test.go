package recovery

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Only a test build contains the code that kills a process at a store.
func TestKillPoints_OnlyInTestBuild(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		kills := bytes.Contains(text, []byte("unix.SIG"+"KILL"))
		if kills && !bytes.HasPrefix(text, []byte("//go:build killpoints\n")) {
			t.Errorf("%s kills, in every build", name)
		}
	}
}
