package memory

import (
	"cmp"
	"fmt"
	"slices"
)

// Part is the maximum memory of one data structure.
type Part struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Flag  string `json:"flag,omitempty"` // flag that limits Bytes; empty if none does
}

// Budget is the maximum memory of the process. Parts are sorted by size, the largest first.
type Budget struct {
	Parts []Part `json:"parts"`
	Total int64  `json:"total_bytes"`
}

// Sum returns the budget with the given parts. It sorts parts in place.
func Sum(parts []Part) Budget {
	slices.SortStableFunc(parts, func(x, y Part) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return Budget{parts, Total(parts)}
}

// Total returns the sum of the bytes of parts.
func Total(parts []Part) (bytes int64) {
	for _, part := range parts {
		bytes += part.Bytes
	}
	return bytes
}

// Check returns an error if the budget exceeds a limit. The error advises to lower up to maxAdvised flags for which
// canBeLower returns true: first the chosen flags, which are those that the operator has set, then those of the
// largest parts.
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
		if named[flag] || len(named) > maxAdvised || !canBeLower(flag) {
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
	return fmt.Errorf("the daemon may need %s, and %s allows %s; %s", Text(b.Total), limit.Source,
		Text(limit.Bytes), advice)
}

// maxAdvised is the maximum number of flags in the error of Check.
const maxAdvised = 3

// Text returns a human-readable number of bytes.
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
