package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

// NewBudget returns the budget with the given parts. It sorts parts in place.
func NewBudget(parts []Part) Budget {
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

// Check returns an error if the budget exceeds the limit. The error advises the operator to lower up to maxAdvised
// flags for which canBeLower returns true: first those in setFlags, which the operator has set, and then those that
// limit the largest parts of the budget.
func (b Budget) Check(limit Limit, setFlags []string, canBeLower func(flag string) bool) error {
	if b.Total <= limit.Bytes {
		return nil
	}
	flags := b.flagsToLower(setFlags, canBeLower)
	advice := "allow more; every limit is as low as it can be"
	if len(flags) > 0 {
		advice = "lower " + strings.Join(flags, ", ") + ", or allow more"
	}
	return fmt.Errorf("the daemon may need %s, and %s allows %s; %s", Text(b.Total), limit.Source,
		Text(limit.Bytes), advice)
}

// flagsToLower returns descriptions of up to maxAdvised flags for which canBeLower returns true. It prefers the flags
// in setFlags to the other flags that limit a part of the budget.
func (b Budget) flagsToLower(setFlags []string, canBeLower func(flag string) bool) []string {
	candidates := slices.Clone(setFlags)
	for _, part := range b.Parts {
		if part.Flag != "" {
			candidates = append(candidates, part.Flag)
		}
	}
	var descriptions []string
	seen := map[string]bool{}
	for _, flag := range candidates {
		if seen[flag] || !canBeLower(flag) {
			continue
		}
		seen[flag] = true
		descriptions = append(descriptions, b.describeFlag(flag))
		if len(descriptions) == maxAdvised {
			break
		}
	}
	return descriptions
}

// describeFlag returns a flag with the name and the size of the part of the budget that it limits, such as
// "--ring-slots (ring of 16 MiB)". If it limits no part, the result contains only the flag.
func (b Budget) describeFlag(flag string) string {
	i := slices.IndexFunc(b.Parts, func(part Part) bool { return part.Flag == flag })
	if i < 0 {
		return "--" + flag
	}
	return fmt.Sprintf("--%s (%s of %s)", flag, b.Parts[i].Name, Text(b.Parts[i].Bytes))
}

// maxAdvised is the maximum number of flags in the error of Check.
const maxAdvised = 3

// Text formats a number of bytes for a log or an error, rounded, such as "1.5 MiB".
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
