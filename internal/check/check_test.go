package check_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check"
)

// TestRange_IncludesEnds also checks that the error for a value out of range gives both limits.
func TestRange_IncludesEnds(t *testing.T) {
	for _, err := range []error{
		check.Number("n", 1, 1, 5), check.Number("n", 5, 1, 5), check.Size("s", 1<<20, 1<<20, 2<<20),
		check.Size("s", 2<<20, 1<<20, 2<<20),
		check.Time("t", time.Second, time.Second, time.Minute),
		check.Time("t", time.Minute, time.Second, time.Minute),
		check.AtMost("m", 1<<20, 1<<20), check.AtMost("m", -1, 0),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for want, err := range map[string]error{
		"check n: 0 is not between 1 and 5":          check.Number("n", 0, 1, 5),
		"check n: 6 is not between 1 and 5":          check.Number("n", 6, 1, 5),
		"check s: 1MiB is not between 2MiB and 1GiB": check.Size("s", 1<<20, 2<<20, 1<<30),
		"check s: 1048577 is not between 2 and 1MiB": check.Size("s", 1<<20+1, 2, 1<<20),
		"check m: 1025KiB is more than 1MiB":         check.AtMost("m", 1025<<10, 1<<20),
		"check t: 999ms is not between 1s and 1m0s": check.Time("t", 999*time.Millisecond, time.Second,
			time.Minute),
		"check t: 1m0.000000001s is not between 1s and": check.Time("t", time.Minute+1, time.Second,
			time.Minute),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAddress_HasPort(t *testing.T) {
	for _, good := range []string{":9126", "127.0.0.1:0", "[::1]:65535", "localhost:80"} {
		if err := check.Address("a", good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{
		"", "9999", "127.0.0.1", ":99999", "127.0.0.1:-1", ":none-of-these",
		"::1:80",
	} {
		if err := check.Address("a", bad); err == nil || !strings.Contains(err.Error(), "check a: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
