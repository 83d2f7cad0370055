package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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

// Check says what to lower where the budget does not fit a limit.
func (b Budget) Check(limit Limit) error {
	if b.Total <= limit.Bytes {
		return nil
	}
	var largest []string
	for _, part := range b.Parts {
		if part.Flag != "" && len(largest) < 3 {
			largest = append(largest, fmt.Sprintf("--%s (%s of %s)", part.Flag, part.Name, Text(part.Bytes)))
		}
	}
	return fmt.Errorf("the limits may come to %s and %s allows %s; lower %s, or allow more",
		Text(b.Total), limit.Source, Text(limit.Bytes), strings.Join(largest, ", "))
}

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
