package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/lab/built"
)

// TestAShortRun kills for a quarter of a minute. It is a program without the race detector, which makes
// stand-ins too slow for what comes.
func TestAShortRun(t *testing.T) { run(t, "kills", "-episode", "12s") }

// TestAShortLife has daemons live by plans, for as long.
func TestAShortLife(t *testing.T) { run(t, "lives", "-lives") }

func run(t *testing.T, what string, args ...string) {
	t.Helper()
	program, err := built.Plain(t.TempDir(), "test/kills")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	said, err := exec.Command(program, append(args, "-time", "15s", "-log", log)...).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	for _, line := range lines {
		t.Log(line)
	}
	last := regexp.MustCompile(`^` + what +
		` [1-9]\d*: lost 0, twice 0, ambiguous \d+, counted as lost \d+ of \d+$`)
	if err != nil || !last.MatchString(lines[len(lines)-1]) {
		t.Errorf("the run ended with %v", err)
	}
}
