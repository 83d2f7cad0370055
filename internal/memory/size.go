package memory

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are the units of a size, the largest first.
var units = []struct {
	name  string
	bytes int
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// MostBytes is the maximum of every limit on bytes. It is small enough that the sum of all limits can't overflow.
const MostBytes = 1 << 40

// ParseSize parses a number of bytes with an optional unit, such as 16MiB or 16777216.
func ParseSize(text string) (bytes int, err error) {
	number, unitBytes := text, 1
	for _, unit := range units {
		if prefix, hasUnit := strings.CutSuffix(text, unit.name); hasUnit {
			number = strings.TrimSpace(prefix)
			unitBytes = unit.bytes
		}
	}
	n, err := strconv.Atoi(number)
	overflows := n > math.MaxInt/unitBytes || n < math.MinInt/unitBytes
	if err != nil || overflows {
		return 0, fmt.Errorf("%q is not a size; use a whole number of bytes, or of KiB, MiB or GiB, such as "+
			"64MiB", text)
	}
	return n * unitBytes, nil
}

// SizeText formats a number of bytes with the largest unit that divides it, such as 16MiB.
func SizeText(bytes int) string {
	for _, u := range units {
		if bytes != 0 && bytes%u.bytes == 0 {
			return strconv.Itoa(bytes/u.bytes) + u.name
		}
	}
	return strconv.Itoa(bytes)
}
