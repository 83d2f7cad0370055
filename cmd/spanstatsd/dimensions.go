package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/flush/points"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
)

// identifying stands for the attributes that say which process it is and where it runs.
const identifying = "identifying"

// parseResource reads names of attributes of a resource; identifying is one of them, and none stands
// alone.
func parseResource(text string) (names []string, err error) {
	if text == "none" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); name {
		case identifying:
			names = append(names, otel.Identifying...)
		case "", "none":
			return nil, fmt.Errorf("parse attributes %q: %q is no attribute's name; "+
				"give none, or names with commas as %s,cloud.region", text, name, identifying)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// instanceName is the one attribute of who sent a span that does not stay where it is not asked for.
const instanceName = "service.instance.id"

// nameDimensions has the doors read the attributes that an exit names, and gives them their budgets.
// Who makes the exit says what is wrong with the text.
func nameDimensions(c *daemon.Config, text string) {
	dimensions, _ := points.ParseDimensions(text)
	for name, budget := range dimensions.Named {
		if names := c.OTLP.Labels.Attributes; !slices.Contains(names, name) {
			c.OTLP.Labels.Attributes = append(names, name)
		}
		if name == instanceName {
			c.OTLP.Labels.Resource = append(c.OTLP.Labels.Resource, name)
		}
		if budget != 0 {
			c.Aggregate.LimitTag(name, budget)
		}
	}
}
