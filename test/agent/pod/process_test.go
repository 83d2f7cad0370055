package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The clock of another process has the same value as that process's own reading.
func TestClock(t *testing.T) {
	self := &process{command: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}
	localClock := func() time.Duration {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
			t.Fatal(err)
		}
		return time.Duration(now.Nano())
	}
	for range 1000 {
		first := localClock()
		between, err := self.cpu()
		if last := localClock(); err != nil || between < first || between > last {
			t.Fatalf("%v is not between %v and %v, %v", between, first, last, err)
		}
	}
	if mib, err := self.peak(); err != nil || mib <= 0 {
		t.Error(mib, err)
	}
}

func TestProcess(t *testing.T) {
	dir := t.TempDir()
	p, err := start(dir, "sleeper", nil, "/bin/sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.alive(); err != nil {
		t.Error(err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	p, err = start(dir, "talker", nil, "/bin/sh", "-c", "echo no such thing; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if err := p.stop(); err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("%v", err)
	}
	if _, err := start(dir, "missing", nil, filepath.Join(dir, "no-such-program")); err == nil {
		t.Error("a missing program was started")
	}
}
