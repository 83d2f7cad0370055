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
	kind, number, _ := strings.Cut(policy, ":")
	base, isBasedOnCPU := strings.CutPrefix(kind, "cpu")
	drainers, isValid := 0, false
	switch {
	case kind == "fixed":
		drainers, isValid = parsePositive(number)
	case isBasedOnCPU:
		drainers, isValid = parsePerCore(base, number)
	}
	if !isValid {
		return 0, fmt.Errorf("%q is not a number of drainers; use one such as cpu:1, cpu+1:0.25 or fixed:4", policy)
	}
	return drainers, nil
}

// parsePositive parses a positive integer.
func parsePositive(text string) (n int, isValid bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 1
}

// maxPerCore is the maximum number of drainers per core.
const maxPerCore = 16

// parsePerCore returns base + perCore * cores, rounded, and at least 1. base is "" or a number such as "+1".
func parsePerCore(base, perCore string) (drainers int, isValid bool) {
	additional := uint64(0)
	if base != "" {
		digits, hasPlus := strings.CutPrefix(base, "+")
		n, err := strconv.ParseUint(digits, 10, 10)
		if !hasPlus || err != nil {
			return 0, false
		}
		additional = n
	}
	factor, err := strconv.ParseFloat(perCore, 64)
	isInRange := factor >= 0 && factor <= maxPerCore // false for NaN, too
	if err != nil || !isInRange {
		return 0, false
	}
	cores := float64(runtime.GOMAXPROCS(0))
	return max(1, int(additional)+int(math.Round(factor*cores))), true
}
