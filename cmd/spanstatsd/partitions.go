package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// parsePartitions reads the policy for the number of partitions.
func parsePartitions(text string) (aggregate.Partitioning, error) {
	if text == "adaptive" {
		return aggregate.Partitioning{Adaptive: aggregate.DefaultDensity}, nil
	}
	kind, number, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(number)
	if err == nil && n >= 1 && n <= aggregate.MaxPartitions {
		switch kind {
		case "adaptive":
			return aggregate.Partitioning{Adaptive: n}, nil
		case "fixed":
			return aggregate.Partitioning{Fixed: n}, nil
		case "per-drainer":
			return aggregate.Partitioning{PerDrainer: n}, nil
		}
	}
	return aggregate.Partitioning{}, fmt.Errorf(
		"parse --partitions: %q is none of adaptive, adaptive:25, fixed:N and per-drainer:N with N from 1 to %d", text, aggregate.MaxPartitions)
}
