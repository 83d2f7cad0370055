package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/routing"
)

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
