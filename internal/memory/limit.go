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

// Limit is how much the process may use, and who says so.
type Limit struct {
	Bytes  int64 // math.MaxInt64: no limit is known
	Source string
}

// None is no limit.
var None = Limit{Bytes: math.MaxInt64}

// Known says whether there is a limit at all.
func (l Limit) Known() bool { return l.Bytes != math.MaxInt64 }

// unlimited is from where on a number stands for no limit: version 1 shows the
// largest number of pages.
const unlimited = 1 << 60

// Find returns the lowest limit on the process. Root is the file system's, where
// /proc and /sys are.
func Find(root fs.FS) Limit {
	lowest := ofControlGroups(root)
	if bytes := debug.SetMemoryLimit(-1); bytes < lowest.Bytes {
		lowest = Limit{bytes, "GOMEMLIMIT"}
	}
	return lowest
}

// ofControlGroups is the lowest limit of them.
func ofControlGroups(root fs.FS) Limit {
	lowest := None
	for group, version := range Groups(root, "memory") {
		name := path.Join(group, [...]string{1: "memory.limit_in_bytes", 2: "memory.max"}[version])
		if bytes, ok := read(root, name); ok && bytes < lowest.Bytes {
			lowest = Limit{bytes, "/" + name}
		}
	}
	return lowest
}

// Groups are the folders, below the root of the file system, of the control groups of the process and of
// those above, each with its version, for a controller by its name in version 1. Within a container the
// path may be the host's, of which only the mount point is there; on the way up to the root that one is
// met in any case.
func Groups(root fs.FS, controller string) iter.Seq2[string, int] {
	listed, _ := fs.ReadFile(root, "proc/self/cgroup") // none: not Linux, or no /proc
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
				for at := path.Clean("/" + group); ; at = path.Dir(at) {
					if !yield(path.Join(mount, at), version) {
						return
					}
					if at == "/" {
						break
					}
				}
			}
		}
	}
}

func read(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return bytes, err == nil && bytes < unlimited // "max" is no number
}

// collectorPart is how much of a control group's limit the collector is told.
const collectorPart = 0.9

// Tell gives the collector a limit that it does not know of. It reports what it
// was told, 0 where it has its own or there is none.
func Tell(limit Limit) int64 {
	if !limit.Known() || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return 0
	}
	bytes := int64(collectorPart * float64(limit.Bytes))
	debug.SetMemoryLimit(bytes)
	return bytes
}
