package aggregate

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
)

// ParseDrainers returns the number of drainers, the goroutines that aggregate spans, for the value of a
// flag. Examples:
//
//	fixed:4      4
//	cpu:1        GOMAXPROCS
//	cpu+1:0.25   1 plus a quarter of GOMAXPROCS
//
// The result is rounded, and at least 1. An invalid value is an error.
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
	base, hasBase := strings.CutPrefix(kind, "cpu+")
	if !hasBase && kind == "cpu" {
		base = "0"
	}
	baseDrainers, baseErr := strconv.ParseUint(base, 10, 10)
	perCore, perCoreErr := strconv.ParseFloat(number, 64)
	isInRange := perCore >= 0 && perCore <= 16 // false for NaN, too
	if baseErr != nil || perCoreErr != nil || !isInRange {
		return 0, invalid
	}
	cores := runtime.GOMAXPROCS(0)
	drainers := int(baseDrainers) + int(math.Round(perCore*float64(cores)))
	return max(1, drainers), nil
}
