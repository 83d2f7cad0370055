package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// groups is where the kernel's control groups are, of version 1 or 2.
const groups = "/sys/fs/cgroup"

// controlGroup limits the memory or the CPU time of a tool. nil has no limits.
type controlGroup struct{ folders []string }

// newControlGroup creates a control group. It needs root.
func newControlGroup(name string, l limits) (*controlGroup, error) {
	if l == (limits{}) {
		return nil, nil
	}
	const period = 100_000 // microseconds
	g := &controlGroup{}
	memory, cpu := fmt.Sprint(l.memoryMiB<<20), int(l.cores*period)
	var err error
	if _, notUnified := os.Stat(filepath.Join(groups, "cgroup.controllers")); notUnified == nil {
		if l.memoryMiB > 0 {
			err = g.set("", name, "memory.max", memory)
		}
		if cpu > 0 {
			err = errors.Join(err, g.set("", name, "cpu.max", fmt.Sprint(cpu, " ", period)))
		}
	} else {
		if l.memoryMiB > 0 {
			err = g.set("memory", name, "memory.limit_in_bytes", memory)
		}
		if cpu > 0 {
			err = errors.Join(err, g.set("cpu", name, "cpu.cfs_quota_us", fmt.Sprint(cpu)))
		}
	}
	if err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

// set creates the group in a hierarchy, "" for version 2, and sets one limit.
func (g *controlGroup) set(hierarchy, name, limit, value string) error {
	folder := filepath.Join(groups, hierarchy, name)
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("create control group: %w; run as root", err)
	}
	g.folders = append(g.folders, folder)
	if err := os.WriteFile(filepath.Join(folder, limit), []byte(value), 0o644); err != nil {
		return fmt.Errorf("set limit of control group: %w", err)
	}
	return nil
}

// enter returns a command that enters the group before it runs the given one.
func (g *controlGroup) enter(command []string) []string {
	if g == nil {
		return command
	}
	script := ""
	for _, folder := range g.folders {
		script += "echo $$ > " + filepath.Join(folder, "cgroup.procs") + " && "
	}
	return append([]string{"/bin/sh", "-c", script + `exec "$@"`, strings.Join(command[:1], "")}, command...)
}

// remove deletes the group after its last process has ended.
func (g *controlGroup) remove() {
	if g == nil {
		return
	}
	for _, folder := range g.folders {
		_ = os.Remove(folder) // a second deletion of a group in one hierarchy fails
	}
}
