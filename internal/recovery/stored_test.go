package recovery

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What kills a process at a store is in no daemon that was not built for it.
func TestNoDaemonKillsItselfUnlessBuiltForIt(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		kills := bytes.Contains(text, []byte("SIG"+"KILL"))
		if kills && !bytes.HasPrefix(text, []byte("//go:build killpoints\n")) {
			t.Errorf("%s kills, in every build", name)
		}
	}
}
