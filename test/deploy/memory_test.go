package deploy

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// TestManifests_DefaultsFitMemory checks that, within the memory limit of the manifests, the daemon has as
// many ring slots and payloads as without a limit, and aggregates for sixty services with a hundred
// resources each.
func TestManifests_DefaultsFitMemory(t *testing.T) {
	daemon, _ := daemonOf(&overlay(t, "sidecar").pods[0].pod.Spec)
	limit := daemon.Resources.Limits[core.ResourceMemory]
	settings := func(memory string, more ...string) (lines []string) {
		t.Helper()
		cmd := exec.Command(binary, "config")
		cmd.Env = append(more, "GOMEMLIMIT="+memory, "GOMAXPROCS=2")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			fields := strings.Fields(line)
			if n := 0; len(fields) > 1 && fields[0] == "--max-aggregates" && memory != "128MiB" {
				if _, err := fmt.Sscan(fields[1], &n); err != nil || n < 6000 {
					t.Errorf("with %s there are %s aggregates", memory, fields[1])
				}
			}
			if len(fields) > 1 && (fields[0] == "--ring-slots" || fields[0] == "--retry-bytes") {
				lines = append(lines, fields[0]+"="+fields[1])
			}
		}
		return lines
	}
	free, limited := settings("off"), settings(strings.TrimSuffix(limit.String(), "Mi")+"MiB")
	if len(free) != 2 || strings.Join(free, " ") != strings.Join(limited, " ") {
		t.Errorf("without a limit %v, with %s %v", free, limit.String(), limited)
	}
	// With the agent's socket, requests of more than 1 MiB are not counted. Nothing else changes.
	if both := settings(strings.TrimSuffix(limit.String(), "Mi")+"MiB",
		"SPANSTATSD_APM_SOCKET=/run/apm.socket"); strings.Join(both, " ") != strings.Join(free, " ") {
		t.Errorf("without a limit %v, as the agent with %s %v", free, limit.String(), both)
	}
	if small := settings("128MiB"); strings.Join(small, " ") == strings.Join(free, " ") {
		t.Errorf("a smaller limit has no effect: the test is ineffective, or the limit can be lower")
	}
}
