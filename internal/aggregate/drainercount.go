package aggregate

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
)

// ParseDrainers returns the number of drainers by a policy: fixed:4, cpu:1 for one per core, or cpu+1:0.25 for
// one and a quarter of the cores. The cores are those that the container may use.
func ParseDrainers(policy string) (int, error) {
	invalid := fmt.Errorf("%q is not a number of drainers; give one such as cpu:1, cpu+1:0.25 or fixed:4", policy)
	kind, number, _ := strings.Cut(policy, ":")
	if kind == "fixed" {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return 0, invalid
		}
		return n, nil
	}
	added, hasAdded := strings.CutPrefix(kind, "cpu+")
	if !hasAdded && kind == "cpu" {
		added = "0"
	}
	base, badBase := strconv.ParseUint(added, 10, 10)
	share, err := strconv.ParseFloat(number, 64)
	if badBase != nil || err != nil || math.IsNaN(share) || share < 0 || share > 16 {
		return 0, invalid
	}
	return max(1, int(base)+int(math.Round(share*float64(runtime.GOMAXPROCS(0))))), nil
}
