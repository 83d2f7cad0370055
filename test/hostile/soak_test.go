package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/lab/built"
)

// TestAShortSoak: everything at once, for less than a minute. It is a program without the race
// detector, which makes stand-ins too slow for what comes and daemons too large for their limit.
func TestAShortSoak(t *testing.T) {
	program, err := built.Plain(t.TempDir(), "test/hostile")
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	said, err := exec.Command(program, "-time", "25s", "-mended", "-log", log).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	for _, line := range lines {
		t.Log(line)
	}
	last := regexp.MustCompile(`: lost 0, counted twice 0, past a limit 0$`)
	if err != nil || !last.MatchString(lines[len(lines)-1]) {
		t.Errorf("the soak ended with %v", err)
	}
}
