package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// slice is how long a warm-up lasts at a time.
const slice = 3 * time.Second

// warm sends requests until the application is warm, but no longer than is given.
func (p *pod) warm(load *load, c cell, most time.Duration) error {
	before, err := p.app.compiling()
	if err != nil {
		return err
	}
	for warmed := slice; ; warmed += slice {
		load.run(c.warmPath, c.app.warming, min(slice, most))
		after, err := p.app.compiling()
		if err != nil {
			return err
		}
		if warmed >= most || c.app.isWarm(warmed, after-before) {
			return nil
		}
		before = after
	}
}

// isWarm says whether an application's compilers rest: whether they took less than a tenth of
// a processor in the last slice. It takes as long as is said of the application, and
// three times as long at most.
func (a app) isWarm(warmed, compiled time.Duration) bool {
	return warmed >= a.warm && compiled < slice/10 || warmed >= 3*a.warm
}

// compiling is the processor's time that Java's compilers have taken. It is on no bill,
// because a process pays it once: it goes on for minutes, less and less, and how far it is
// when a window begins is chance.
func (p *process) compiling() (sum time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("list threads of %s: %w", p.name, err)
	}
	for _, thread := range threads {
		took, err := compilerTime(thread)
		if err != nil && !os.IsNotExist(err) { // a thread may have ended; those don't
			return 0, fmt.Errorf("read thread of %s: %w", p.name, err)
		}
		sum += took
	}
	return sum, nil
}

// compilerTime is what one thread has taken, if it is a compiler.
func compilerTime(thread string) (took time.Duration, err error) {
	name, err := os.ReadFile(filepath.Join(thread, "comm"))
	if err != nil || !isCompiler(string(name)) {
		return 0, err
	}
	times, err := os.ReadFile(filepath.Join(thread, "schedstat"))
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(times), &took)
	return took, err
}

// isCompiler says whether a thread is one, by its name as the kernel cuts it.
func isCompiler(name string) bool {
	return strings.HasPrefix(name, "C1 CompilerThre") || strings.HasPrefix(name, "C2 CompilerThre")
}
