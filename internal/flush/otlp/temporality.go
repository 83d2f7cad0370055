package otlp

import (
	"fmt"
	"strings"
)

// Temporality is what a point says: what was counted in its window, or since its series
// began.
type Temporality string

const (
	Delta      Temporality = "delta"
	Cumulative Temporality = "cumulative"
)

// parsePreference reads the variable's value, in any case. To save memory an exporter of
// counters and histograms, which is what we have, sends deltas.
func parsePreference(_, text string) (Temporality, error) {
	switch strings.ToLower(text) {
	case "cumulative":
		return Cumulative, nil
	case "delta", "lowmemory":
		return Delta, nil
	}
	return "", fmt.Errorf("%q is neither cumulative nor delta nor lowmemory", text)
}
