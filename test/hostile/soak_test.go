package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/lab/built"
)

// TestSoak_Short runs a complete soak for less than a minute, as a separate program without the race
// detector, which would make the fake backends too slow and the daemons too large for their memory
// limit.
func TestSoak_Short(t *testing.T) {
	program, err := built.Plain(t.TempDir(), "test/hostile")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	output, err := exec.Command(program, "-time", "25s", "-skip-defects", "-log", log).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	for _, line := range lines {
		t.Log(line)
	}
	last := regexp.MustCompile(`: lost 0, counted twice 0, over a limit 0$`)
	if err != nil || !last.MatchString(lines[len(lines)-1]) {
		t.Errorf("the soak ended with %v", err)
	}
}
