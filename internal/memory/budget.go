package memory

import (
	"cmp"
	"fmt"
	"slices"
)

// Part is one structure's bound.
type Part struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Flag  string `json:"flag,omitempty"` // what to lower to make it smaller
}

// Budget is what the process may come to use, the largest part first.
type Budget struct {
	Parts []Part `json:"parts"`
	Total int64  `json:"total_bytes"`
}

// Sum makes a budget of the rooms' parts.
func Sum(parts ...[]Part) (b Budget) {
	b.Parts = slices.Concat(parts...)
	slices.SortStableFunc(b.Parts, func(x, y Part) int { return cmp.Compare(y.Bytes, x.Bytes) })
	for _, part := range b.Parts {
		b.Total += part.Bytes
	}
	return b
}

// Check says what to lower where the budget does not fit a limit: the flags of the
// largest parts, of those that can be lower than they are.
func (b Budget) Check(limit Limit, canBeLower func(flag string) bool) error {
	if b.Total <= limit.Bytes {
		return nil
	}
	advice, named := "", map[string]bool{"": true}
	for _, part := range b.Parts {
		if !named[part.Flag] && len(named) <= mostAdvised && canBeLower(part.Flag) {
			advice += fmt.Sprintf("--%s (%s of %s), ", part.Flag, part.Name, Text(part.Bytes))
			named[part.Flag] = true
		}
	}
	if advice == "" {
		advice = "allow more; every limit is as low as it can be"
	} else {
		advice = "lower " + advice + "or allow more"
	}
	return fmt.Errorf("the limits may come to %s and %s allows %s; %s", Text(b.Total), limit.Source,
		Text(limit.Bytes), advice)
}

// mostAdvised is how many flags a person is told of.
const mostAdvised = 3

// Text is a number of bytes for a person.
func Text(bytes int64) string {
	switch {
	case bytes >= 10<<30:
		return fmt.Sprintf("%d GiB", bytes>>30)
	case bytes >= 10<<20:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}
