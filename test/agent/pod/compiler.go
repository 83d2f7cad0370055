package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// compiling returns the processor time of Java's JIT compiler threads. It is excluded from the bill,
// because a process spends it once, decreasingly over minutes, and its state at the beginning of the
// bill is random. These threads live as long as their process, see spring.
func (p *process) compiling() (sum time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("list threads of %s: %w", p.name, err)
	}
	for _, thread := range threads {
		took, err := compilerTime(thread)
		if err != nil && !os.IsNotExist(err) { // another kind of thread may have ended
			return 0, fmt.Errorf("read thread of %s: %w", p.name, err)
		}
		sum += took
	}
	return sum, nil
}

// compilerTime returns the processor time of a thread, or 0 if it is not a compiler.
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

// isCompiler reports whether a thread is a compiler, by its name as truncated by the kernel.
func isCompiler(name string) bool {
	return strings.HasPrefix(name, "C1 CompilerThre") || strings.HasPrefix(name, "C2 CompilerThre")
}
