package main

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/routing"
)

// parseDrainers reads the policy for the number of drainers. Cores are those
// that the container may use, as Go sees them.
func parseDrainers(text string) (int, error) {
	bad := fmt.Errorf("parse --drainers: %q is none of cpu:1, cpu+1:0.25 and fixed:4", text)
	kind, number, found := strings.Cut(text, ":")
	if !found {
		return 0, bad
	}
	if kind == "fixed" {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return 0, bad
		}
		return n, nil
	}
	share, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(share) || share < 0 || share > 16 {
		return 0, bad
	}
	base := 0
	if rest, ok := strings.CutPrefix(kind, "cpu+"); ok {
		if base, err = strconv.Atoi(rest); err != nil || base < 0 || base > 1024 {
			return 0, bad
		}
	} else if kind != "cpu" {
		return 0, bad
	}
	return max(1, base+int(math.Round(share*float64(runtime.GOMAXPROCS(0))))), nil
}

// parsePartitions reads the policy for the number of partitions.
func parsePartitions(text string) (routing.Partitioning, error) {
	if text == "adaptive" {
		return routing.Partitioning{Adaptive: routing.DefaultDensity}, nil
	}
	kind, number, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(number)
	if err == nil && n >= 1 && n <= routing.MaxPartitions {
		switch kind {
		case "adaptive":
			return routing.Partitioning{Adaptive: n}, nil
		case "fixed":
			return routing.Partitioning{Fixed: n}, nil
		case "per-drainer":
			return routing.Partitioning{PerDrainer: n}, nil
		}
	}
	return routing.Partitioning{}, fmt.Errorf(
		"parse --partitions: %q is none of adaptive, adaptive:25, fixed:N and per-drainer:N with N from 1 to %d", text, routing.MaxPartitions)
}
