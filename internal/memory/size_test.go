package memory_test

import (
	"math"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

func TestSize_Units(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "5000": 5000, "1KiB": 1 << 10, "16MiB": 16 << 20, "3GiB": 3 << 30, "1025KiB": 1025 << 10,
		"-1": -1,
	} {
		got, err := memory.ParseSize(text)
		if err != nil || got != want || memory.SizeText(got) != text {
			t.Errorf("%s is read as %d (%v) and written as %s", text, got, err, memory.SizeText(got))
		}
	}
	for text, want := range map[string]int{"16777216": 16 << 20, "1024KiB": 1 << 20, "2 MiB": 2 << 20} {
		if got, err := memory.ParseSize(text); err != nil || got != want {
			t.Errorf("%s is read as %d (%v), not %d", text, got, err, want)
		}
	}
	for _, bytes := range []int{math.MaxInt, math.MinInt, 1<<62 + 1} {
		if got, err := memory.ParseSize(memory.SizeText(bytes)); err != nil || got != bytes {
			t.Errorf("%d is written as %s and read as %d (%v)", bytes, memory.SizeText(bytes), got, err)
		}
	}
}

func TestSize_InvalidIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "MiB", "lots", "1.5MiB", "16Mb", "16 M", "9223372036854775807KiB",
		"-9223372036854775808GiB", "1MiB2",
	} {
		if got, err := memory.ParseSize(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}
