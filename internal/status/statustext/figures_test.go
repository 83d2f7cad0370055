package statustext

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

func TestRates(t *testing.T) {
	started := time.Unix(100, 0)
	at := func(second int64, received uint64, started time.Time) *status.Status {
		return &status.Status{
			At:      time.Unix(second, 0),
			Process: status.Process{Started: started},
			Spans:   status.Spans{Accounting: status.Accounting{Received: received}},
		}
	}
	received := func(s *status.Status) uint64 { return s.Accounting.Received }
	first := at(200, 1000, started)
	if rate, known := rateSince(first, at(204, 3000, started), received); !known || rate != 500 {
		t.Errorf("%v, %t", rate, known)
	}
	for what, last := range map[string]*status.Status{
		"none": nil, "an empty one": {}, "another daemon": at(200, 1, started.Add(time.Second)),
		"the same moment": at(204, 1, started),
	} {
		if rate, known := rateSince(last, at(204, 3000, started), received); known {
			t.Errorf("%s: %v", what, rate)
		}
	}
}

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		count(0): "0", count(999): "999", count(1000): "1,000", count(uint64(1234567)): "1,234,567",
		count(-1234): "-1,234",
		rateText(0):  "0/s", rateText(0.25): "0.2/s", rateText(1234.5): "1,235/s",
		bytesText(1023): "1023 B", bytesText(16 << 20): "16.0 MiB",
		latency(0): "0", latency(5e-9): "5 ns", latency(1.5e-6): "1.50 µs", latency(.0123): "12.3 ms",
		latency(123):          "123 s",
		ago(59 * time.Second): "59s", ago(3601 * time.Second): "1h 0m", ago(50 * time.Hour): "2d 2h",
		bar(0, 0, 4): "····", bar(.5, 1, 4): "██·▏", bar(2, 2, 4): "████",
		sparkline([]uint64{0, 1, 4, 8}): " ▂▅█",
		clip("abcdef", 4):               "abc…",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestText_Paint(t *testing.T) {
	if got := paint(true).good("x"); got != "\x1b[32mx\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := paint(false).bad("x"); got != "x" {
		t.Errorf("%q", got)
	}
}
