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

// Find returns the lowest memory limit of the process, from its cgroups or from GOMEMLIMIT. root must be the root
// directory of the file system, which contains /proc and /sys.
func Find(root fs.FS) Limit {
	lowest := lowestCgroupLimit(root)
	goLimit := debug.SetMemoryLimit(-1) // a negative value only reads the limit
	if goLimit < lowest.Bytes {
		lowest = Limit{goLimit, "GOMEMLIMIT"}
	}
	return lowest
}

// lowestCgroupLimit returns the lowest memory limit of the cgroups of the process, or None if no cgroup has a limit.
func lowestCgroupLimit(root fs.FS) Limit {
	lowest := None
	for directory, version := range Groups(root, "memory") {
		file := path.Join(directory, "memory.max")
		if version == 1 {
			file = path.Join(directory, "memory.limit_in_bytes")
		}
		if bytes, ok := readLimit(root, file); ok && bytes < lowest.Bytes {
			lowest = Limit{bytes, "/" + file}
		}
	}
	return lowest
}

// Groups iterates over the cgroups of the process and all their parents. It yields the directory of each cgroup,
// relative to root, and its cgroup version, 1 or 2. controller is the name of the controller in cgroup v1, such as
// memory. In a container some of the directories do not exist, because /proc/self/cgroup can contain paths on the host.
func Groups(root fs.FS, controller string) iter.Seq2[string, int] {
	memberships, _ := fs.ReadFile(root, "proc/self/cgroup") // empty without Linux or /proc
	return func(yield func(directory string, version int) bool) {
		for line := range strings.Lines(string(memberships)) {
			mounts, group, version := parseMembership(strings.TrimSpace(line), controller)
			for _, mount := range mounts {
				if !visitParents(mount, group, version, yield) {
					return
				}
			}
		}
	}
}

// parseMembership parses a line of /proc/self/cgroup, for example "5:cpu,memory:/group". mounts contains the
// directories where the cgroup file system can be mounted, group is the path of the cgroup in them, and version is
// 1 or 2. mounts is empty if the line does not list the controller.
func parseMembership(line, controller string) (mounts []string, group string, version int) {
	id, rest, _ := strings.Cut(line, ":")
	controllers, group, isValid := strings.Cut(rest, ":")
	isVersion2 := isValid && id == "0" && controllers == ""
	if isVersion2 {
		return []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"}, group, 2
	}
	if isValid && slices.Contains(strings.Split(controllers, ","), controller) {
		return []string{"sys/fs/cgroup/" + controller}, group, 1
	}
	return nil, "", 0
}

// visitParents calls yield with the directory of a cgroup, then with each parent directory up to mount, and with the
// version of cgroups each time. If yield returns false, visitParents stops and returns false.
func visitParents(mount, group string, version int, yield func(directory string, version int) bool) bool {
	directory := path.Clean("/" + group)
	for directory != "/" {
		if !yield(path.Join(mount, directory), version) {
			return false
		}
		directory = path.Dir(directory)
	}
	return yield(mount, version)
}

// readLimit reads a memory limit from a cgroup file. It returns false if the file is missing or states no limit.
func readLimit(root fs.FS, file string) (bytes int64, ok bool) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	bytes, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bytes >= unlimited { // the text is "max" in cgroup v2 without a limit
		return 0, false
	}
	return bytes, true
}

// ProgramBytes is the maximum resident memory of the pages of the executable. A cgroup is charged for them, but Go's
// soft memory limit does not include them. Without their share, a process at its limit reads its code again and again.
const ProgramBytes = 17 << 20

// SetGoLimit sets the soft memory limit of the Go runtime and returns it. The soft limit is lower than the limit of the
// process, because the executable and the socket buffers of the kernel need memory too. SetGoLimit returns 0 and does
// nothing if the process has no limit.
func SetGoLimit(limit Limit) int64 {
	if !limit.Known() {
		return 0
	}
	socketBytes := limit.Bytes / 20 // an estimate: 5 percent
	remaining := limit.Bytes - socketBytes - ProgramBytes
	goLimit := max(remaining, limit.Bytes/2) // little or nothing remains of a very low limit
	debug.SetMemoryLimit(goLimit)
	return goLimit
}
