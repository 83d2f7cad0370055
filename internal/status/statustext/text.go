package statustext

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// paint adds colors to text for a terminal, if true.
type paint bool

func (p paint) with(code, text string) string {
	if !p || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p paint) bold(s string) string   { return p.with("1", s) }
func (p paint) dim(s string) string    { return p.with("2", s) }
func (p paint) good(s string) string   { return p.with("32", s) }
func (p paint) warn(s string) string   { return p.with("33", s) }
func (p paint) bad(s string) string    { return p.with("1;31", s) }
func (p paint) accent(s string) string { return p.with("36", s) }

// count formats an integer with thousands separators, for example 1,234,567.
func count[T int | int64 | uint64](n T) string {
	text := strconv.FormatInt(int64(n), 10)
	digits, isNegative := strings.CutPrefix(text, "-")
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if isNegative {
		return "-" + digits
	}
	return digits
}

// rateText formats a rate per second, for example 0.2/s or 1,235/s.
func rateText(rate float64) string {
	if rate != 0 && math.Abs(rate) < 10 {
		return strconv.FormatFloat(rate, 'f', 1, 64) + "/s"
	}
	return count(int64(math.Round(rate))) + "/s"
}

// bytesText formats a number of bytes, for example 16.0 MiB.
func bytesText(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// latency formats a latency in seconds with three significant digits, for example 12.3 ms.
func latency(seconds float64) string {
	switch {
	case seconds == 0:
		return "0"
	case seconds < 1e-6:
		return fmt.Sprintf("%.0f ns", seconds*1e9)
	case seconds < 1e-3:
		return threeDigits(seconds*1e6) + " µs"
	case seconds < 1:
		return threeDigits(seconds*1e3) + " ms"
	}
	return threeDigits(seconds) + " s"
}

// threeDigits formats a number of at least 1 with three significant digits.
func threeDigits(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// ago formats a duration in its two largest units, for example 2d 2h.
func ago(d time.Duration) string {
	d = d.Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24)
}

// bar draws the current usage as a bar of the given width, with a mark at the highest usage. Both are
// shares from 0 to 1. For example, bar(.5, 1, 4) is "██·▏".
func bar(current, highest float64, width int) string {
	cells := []rune(strings.Repeat("·", width))
	filled := cellsFor(current, width)
	for i := range filled {
		cells[i] = '█'
	}
	mark := cellsFor(highest, width)
	if mark > filled {
		cells[mark-1] = '▏'
	}
	return string(cells)
}

// cellsFor returns how many cells of a bar represent a share from 0 to 1, rounded up.
func cellsFor(share float64, width int) int {
	share = min(max(share, 0), 1)
	return int(math.Ceil(share * float64(width)))
}

var levels = []rune("▁▂▃▄▅▆▇█")

// sparkline draws a histogram as one line of text. Each character is the height of one count, relative
// to the largest one, for example " ▂▅█".
func sparkline(counts []uint64) string {
	largest := uint64(1)
	for _, n := range counts {
		largest = max(largest, n)
	}
	var b strings.Builder
	for _, n := range counts {
		if n == 0 {
			b.WriteByte(' ')
			continue
		}
		height := float64(n) / float64(largest) // from 0 to 1
		level := int(height * float64(len(levels)))
		b.WriteRune(levels[min(level, len(levels)-1)])
	}
	return b.String()
}
