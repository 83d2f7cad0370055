package bench

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

func integer(n float64) string { return fmt.Sprintf("%.0f", n) }

func nanoseconds(ns float64) string {
	d := time.Duration(ns)
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
}

// thousands formats a whole number with grouped digits.
func thousands(n float64) string {
	digits := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

// happened describes each nonzero count, as a rate over a number of seconds.
func happened(label string, counts map[string]uint64, seconds float64) (described []string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n > 0 {
			described = append(described, label+name+" "+thousands(float64(n)/seconds))
		}
	}
	return described
}

// fact is a named figure of a report. The name is also a column heading.
type fact struct{ name, value string }
