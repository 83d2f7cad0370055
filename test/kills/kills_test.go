package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/lab/built"
)

// TestKills_ShortRun runs kills for about fifteen seconds, as a separate program without the race
// detector, which would make the fake destinations too slow for the load.
func TestKills_ShortRun(t *testing.T) { run(t, "kills", "-episode", "12s") }

// TestLives_ShortRun runs planned lives for about fifteen seconds.
func TestLives_ShortRun(t *testing.T) { run(t, "lives", "-lives") }

func run(t *testing.T, unit string, args ...string) {
	t.Helper()
	program, err := built.Plain(t.TempDir(), "test/kills")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	output, err := exec.Command(program, append(args, "-time", "15s", "-log", log)...).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	for _, line := range lines {
		t.Log(line)
	}
	last := regexp.MustCompile(`^` + unit +
		` [1-9]\d*: lost 0, counted twice 0, ambiguous \d+, reported as lost \d+ of \d+$`)
	if err != nil || !last.MatchString(lines[len(lines)-1]) {
		t.Errorf("the run ended with %v", err)
	}
}
