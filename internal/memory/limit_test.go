package memory_test

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

func TestControlGroups(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  map[string]string
		bytes  int64
		source string
	}{
		{"no proc", nil, math.MaxInt64, ""},
		{"no limit", map[string]string{
			"proc/self/cgroup":                 "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":     "max\n",
			"sys/fs/cgroup/a/memory.max":       "max\n",
			"sys/fs/cgroup/memory.max.invalid": "1\n",
		}, math.MaxInt64, ""},
		{"version 2, its own", map[string]string{
			"proc/self/cgroup":             "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "67108864\n",
			"sys/fs/cgroup/a/memory.max":   "134217728\n",
		}, 64 << 20, "/sys/fs/cgroup/a/b/memory.max"},
		{"version 2, the pod's", map[string]string{
			"proc/self/cgroup":             "0::/pod/container\n",
			"sys/fs/cgroup/pod/memory.max": "33554432\n",
		}, 32 << 20, "/sys/fs/cgroup/pod/memory.max"},
		{"version 2, a container's own view", map[string]string{
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "1048576\n",
		}, 1 << 20, "/sys/fs/cgroup/memory.max"},
		{"version 1, among other controllers", map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:hugetlb,memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "268435456\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
		}, 256 << 20, "/sys/fs/cgroup/memory/x/memory.limit_in_bytes"},
		{"version 1, where the path is the host's", map[string]string{
			"proc/self/cgroup":                           "4:memory:/kubepods/pod1/abc\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "134217728\n",
		}, 128 << 20, "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		{"both versions", map[string]string{
			"proc/self/cgroup": "4:memory:/x\n0::/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/unified/x/memory.max":           "3000\n",
		}, 3000, "/sys/fs/cgroup/unified/x/memory.max"},
		{"nonsense", map[string]string{
			"proc/self/cgroup":           "nonsense\n::\n0::\n7:memory:../../x\n",
			"sys/fs/cgroup/memory.max":   "-\n",
			"sys/fs/cgroup/x/memory.max": "12 34\n",
		}, math.MaxInt64, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range c.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := memory.Find(root); got.Bytes != c.bytes || got.Source != c.source {
				t.Errorf("found %+v, not %d by %q", got, c.bytes, c.source)
			}
		})
	}
}

// TestTell_LeavesMemoryForProgram checks that the limit of Go's heap is below that of the process, whether a cgroup or
// GOMEMLIMIT limits the process.
func TestTell_LeavesMemoryForProgram(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	debug.SetMemoryLimit(math.MaxInt64)
	if got := memory.SetGoLimit(memory.Limit{Bytes: math.MaxInt64}); got != 0 ||
		debug.SetMemoryLimit(-1) != math.MaxInt64 {
		t.Errorf("got %d without a limit", got)
	}
	debug.SetMemoryLimit(64 << 20)
	limit := memory.Find(fstest.MapFS{})
	if limit.Source != "GOMEMLIMIT" || limit.Bytes != 64<<20 {
		t.Errorf("GOMEMLIMIT is not found: %+v", limit)
	}
	for bytes, want := range map[int64]int64{
		64 << 20: 64<<20 - 64<<20/20 - memory.ProgramBytes, 1 << 40: 1<<40 - 1<<40/20 - memory.ProgramBytes,
		20 << 20: 10 << 20, // too small for a daemon
	} {
		limit.Bytes = bytes
		if got := memory.SetGoLimit(limit); got != want || debug.SetMemoryLimit(-1) != want {
			t.Errorf("got %d of a limit of %d, want %d", got, bytes, want)
		}
	}
}
