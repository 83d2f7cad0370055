package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// compiling is the processor's time that Java's compilers have taken. It is on no bill,
// because a process pays it once: it goes on for minutes, less and less, and how far it is
// when a bill begins is chance. Its threads live as long as their process, see spring.
func (p *process) compiling() (sum time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("list threads of %s: %w", p.name, err)
	}
	for _, thread := range threads {
		took, err := compilerTime(thread)
		if err != nil && !os.IsNotExist(err) { // a thread may have ended; these don't
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
