package points

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
)

// Histogram is the kind of histograms: explicit buckets by their upper bounds in seconds, or exponential ones
// without bounds.
type Histogram struct {
	Bounds []float64
	Millis bool // explicit buckets are sent in milliseconds
}

// The kinds of histograms.
const (
	Exponential    = "exponential"
	Explicit       = "explicit"
	ExplicitMillis = "explicit-ms"
)

// ConnectorBounds are the bounds of the Collector's spanmetrics connector.
const ConnectorBounds = "connector"

// namedBounds are bounds that have a name. Those of "sdk" are what OpenTelemetry's conventions advise for HTTP
// requests.
var namedBounds = map[string][]float64{
	ConnectorBounds: {.002, .004, .006, .008, .01, .05, .1, .2, .4, .8, 1, 1.4, 2, 5, 10, 15},
	"sdk":           {.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10},
}

// ParseHistogram parses a kind of histogram: exponential, explicit, or explicit-ms, whose buckets are reported in
// milliseconds. The upper bounds of explicit buckets, in seconds, can follow after a colon, as in
// explicit:0.01,0.1,1. Without bounds in the text, explicit buckets have ConnectorBounds.
func ParseHistogram(text string) (Histogram, error) {
	if text == Exponential {
		return Histogram{}, nil
	}
	kind, boundsText, hasBounds := strings.Cut(text, ":")
	if kind != Explicit && kind != ExplicitMillis {
		return Histogram{}, fmt.Errorf("%q is not one of %s, %s, %s", text, Exponential, Explicit, ExplicitMillis)
	}
	if !hasBounds {
		boundsText = ConnectorBounds
	}
	bounds, err := ParseBounds(boundsText)
	return Histogram{Bounds: bounds, Millis: kind == ExplicitMillis}, err
}

// ParseBounds parses the upper bounds of buckets: comma-separated numbers of seconds, or the name of a predefined
// list, connector or sdk.
func ParseBounds(text string) (bounds []float64, err error) {
	if predefined, isName := namedBounds[text]; isName {
		return predefined, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		bound, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number of seconds; use connector, sdk, or comma-separated "+
				"seconds such as 0.01,0.1,1", word)
		}
		bounds = append(bounds, bound)
	}
	return bounds, sketch.CheckBounds(bounds)
}
