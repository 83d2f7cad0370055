package status

import (
	"os"
	"testing"
	"testing/fstest"
)

// TestMachine reads the limits of cgroup v1 and v2, and the usage of this process.
func TestMachine(t *testing.T) {
	for name, c := range map[string]struct {
		files            map[string]string
		limit, throttled float64
	}{
		"no limit": {nil, 0, 0},
		"version 2, the lowest of all levels": {map[string]string{
			"proc/self/cgroup": "0::/pod/a\n", "sys/fs/cgroup/pod/a/cpu.max": "max 100000\n",
			"sys/fs/cgroup/pod/cpu.max":    "50000 100000\n",
			"sys/fs/cgroup/pod/a/cpu.stat": "usage_usec 9\nthrottled_usec 2500000\n",
		}, .5, 2.5},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "150000\n",
			"sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpu/x/cpu.stat":          "throttled_time 3000000000\n",
		}, 1.5, 3},
		"version 1 without a limit": {map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n", "sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "-1\n",
			"sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n",
		}, 0, 0},
	} {
		root := fstest.MapFS{}
		for name, text := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if m := readMachine(root); m.CPULimit != c.limit || m.ThrottledSeconds != c.throttled {
			t.Errorf("%s: %+v", name, m)
		}
	}
	m := readMachine(os.DirFS("/"))
	if m.Processors < 1 || m.OpenFiles < 3 || m.MaxFiles < uint64(m.OpenFiles) || m.ResidentBytes < 1<<20 {
		t.Errorf("this process has %+v", m)
	}
}
