package aggregate_test

import (
	"runtime"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// TestParseDrainers: the policies, in a container of eight cores.
func TestParseDrainers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for text, want := range map[string]int{
		"cpu:1": 8, "cpu:0.5": 4, "cpu:2": 16, "cpu:0": 1, "cpu:0.01": 1,
		"cpu+1:0.25": 3, "cpu+2:0": 2, "cpu+0:1": 8,
		"fixed:4": 4, "fixed:1": 1,
	} {
		if got, err := aggregate.ParseDrainers(text); err != nil || got != want {
			t.Errorf("%s: %d drainers, want %d; %v", text, got, want, err)
		}
	}
	for _, text := range []string{
		"", "4", "cpu", "cpu:", "cpu:-1", "cpu:NaN", "cpu:Inf", "cpu:17", "cpu+:1", "cpu+x:1", "cpu+-1:1",
		"cpu+1025:1", "3:1", ":1", "cpux:1",
		"fixed:", "fixed:0", "fixed:x", "gpu:1", "cpu:1e9", "fixed:-2", "fixed:1.5", "cores:1",
	} {
		if n, err := aggregate.ParseDrainers(text); err == nil {
			t.Errorf("%q was parsed as %d drainers", text, n)
		}
	}
}
