package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestPeers_OldOnesAreNamed: a peer is named if its version is more than 90 days old, and only then.
func TestPeers_OldOnesAreNamed(t *testing.T) {
	t.Chdir("../..")
	for target, peers := range peersOf {
		for _, p := range peers {
			version, at, err := p.released()
			if err != nil {
				t.Fatal(err)
			}
			document := t.TempDir() + "/benchmarks.md"
			text := "<!-- make " + target + " -->\n<!-- end -->\n"
			if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			for age, isNamed := range map[time.Duration]bool{maxPeerAge: false, maxPeerAge + time.Hour: true} {
				printed := printedBy(t, func() error { return tellOldPeers(document, at.Add(age)) })
				if strings.Contains(printed, "make "+target+" compares with "+p.module+" "+version) != isNamed {
					t.Errorf("%s is %v old: %q is printed", p.module, age, printed)
				}
			}
		}
	}
}

// printedBy returns what a function prints to standard output.
func printedBy(t *testing.T, print func() error) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdout
	os.Stdout = write
	err = print()
	os.Stdout = old
	if closed := write.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	printed, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	return string(printed)
}
