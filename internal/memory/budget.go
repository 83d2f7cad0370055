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

// Sum makes a budget of the rooms' parts, which it sorts.
func Sum(parts []Part) Budget {
	slices.SortStableFunc(parts, func(x, y Part) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return Budget{parts, Total(parts)}
}

// Total is what parts come to.
func Total(parts []Part) (bytes int64) {
	for _, part := range parts {
		bytes += part.Bytes
	}
	return bytes
}

// Check says what to lower where the budget does not fit a limit: flags that somebody has chosen
// first, then those of the largest parts, of all that can be lower than they are.
func (b Budget) Check(limit Limit, chosen []string, canBeLower func(flag string) bool) error {
	if b.Total <= limit.Bytes {
		return nil
	}
	advice, named := "", map[string]bool{"": true}
	flags := slices.Clone(chosen)
	for _, part := range b.Parts {
		flags = append(flags, part.Flag)
	}
	for _, flag := range flags {
		if named[flag] || len(named) > mostAdvised || !canBeLower(flag) {
			continue
		}
		named[flag] = true
		advice += "--" + flag
		if i := slices.IndexFunc(b.Parts, func(p Part) bool { return p.Flag == flag }); i >= 0 {
			advice += fmt.Sprintf(" (%s of %s)", b.Parts[i].Name, Text(b.Parts[i].Bytes))
		}
		advice += ", "
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
