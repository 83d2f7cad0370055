package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// circumstances describes a measurement: date, commit, machine, and load.
func circumstances() string {
	commit := "an unknown commit"
	if out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("Measured %s, commit %s, %s, %d processors (%s), load %s before.",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), commit, runtime.Version(), runtime.NumCPU(),
		processor(), load())
}

var modelName = regexp.MustCompile(`(?m)^model name\s*:\s*(.*)$`)

func processor() string {
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := modelName.FindSubmatch(text); found != nil {
			return string(found[1])
		}
	}
	return runtime.GOARCH
}

// load returns the machine's load average over the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
