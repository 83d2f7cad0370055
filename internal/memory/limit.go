package memory

import (
	"io/fs"
	"iter"
	"math"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// Limit is the memory limit of the process.
type Limit struct {
	Bytes  int64  // math.MaxInt64 if there is no limit
	Source string // path of a cgroup file, or GOMEMLIMIT
}

// None is the Limit of a process without a memory limit.
var None = Limit{Bytes: math.MaxInt64}

// Known reports whether there is a limit.
func (l Limit) Known() bool { return l.Bytes != math.MaxInt64 }

// unlimited is the smallest value of a cgroup file that means "no limit". A cgroup v1 without a limit has the largest
// possible number of pages in bytes.
const unlimited = 1 << 60

// Find returns the lowest memory limit of the process. root is the root of the file system, with /proc and /sys.
func Find(root fs.FS) Limit {
	lowest := lowestCgroupLimit(root)
	if bytes := debug.SetMemoryLimit(-1); bytes < lowest.Bytes {
		lowest = Limit{bytes, "GOMEMLIMIT"}
	}
	return lowest
}

// lowestCgroupLimit returns the lowest limit of all cgroups of the process, or None.
func lowestCgroupLimit(root fs.FS) Limit {
	lowest := None
	for group, version := range Groups(root, "memory") {
		name := path.Join(group, [...]string{1: "memory.limit_in_bytes", 2: "memory.max"}[version])
		if bytes, ok := readLimit(root, name); ok && bytes < lowest.Bytes {
			lowest = Limit{bytes, "/" + name}
		}
	}
	return lowest
}

// Groups returns the directories, relative to root, of the cgroups of the process and of all their parents, each with
// its cgroup version. controller is the name of the controller in cgroup v1.
//
// In a container, /proc/self/cgroup can list the path on the host, and most of its directories do not exist in the
// container. The mount point of the cgroup exists, and it is always among the parents.
func Groups(root fs.FS, controller string) iter.Seq2[string, int] {
	listed, _ := fs.ReadFile(root, "proc/self/cgroup") // empty without Linux or /proc
	return func(yield func(string, int) bool) {
		for line := range strings.Lines(string(listed)) {
			id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
			controllers, group, found := strings.Cut(rest, ":")
			mounts, version := []string(nil), 2
			switch {
			case !found:
			case id == "0" && controllers == "":
				mounts = []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}
			case slices.Contains(strings.Split(controllers, ","), controller):
				mounts, version = []string{"sys/fs/cgroup/" + controller}, 1
			}
			for _, mount := range mounts {
				for parent := path.Clean("/" + group); ; parent = path.Dir(parent) {
					if !yield(path.Join(mount, parent), version) {
						return
					}
					if parent == "/" {
						break
					}
				}
			}
		}
	}
}

// readLimit reads a limit from a cgroup file. It reports false if the file is missing or has no limit.
func readLimit(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return bytes, err == nil && bytes < unlimited // ParseInt fails for "max"
}

// ProgramBytes is the maximum resident memory of the pages of the executable. A cgroup is charged for them, but Go's
// soft memory limit does not include them. Without their share, a process at its limit reads its code again and again.
const ProgramBytes = 17 << 20

// Tell sets Go's soft memory limit to the part of limit that remains for Go, and returns it: without ProgramBytes, and
// without a twentieth for the kernel's socket buffers. It does nothing and returns 0 if there is no limit.
func Tell(limit Limit) int64 {
	if !limit.Known() {
		return 0
	}
	bytes := max(limit.Bytes/2, limit.Bytes-limit.Bytes/20-ProgramBytes)
	debug.SetMemoryLimit(bytes)
	return bytes
}
