package check

import (
	"strings"
	"testing"
	"time"
)

// TestTheEndsOfARangeAreWithinIt, and what is outside is named with both ends.
func TestTheEndsOfARangeAreWithinIt(t *testing.T) {
	for _, err := range []error{
		Number("n", 1, 1, 5), Number("n", 5, 1, 5), Size("s", 1<<20, 1<<20, 2<<20), Size("s", 2<<20, 1<<20, 2<<20),
		Time("t", time.Second, time.Second, time.Minute), Time("t", time.Minute, time.Second, time.Minute),
		AtMost("m", 1<<20, 1<<20), AtMost("m", -1, 0),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for want, err := range map[string]error{
		"check n: 0 is not between 1 and 5":             Number("n", 0, 1, 5),
		"check n: 6 is not between 1 and 5":             Number("n", 6, 1, 5),
		"check s: 1MiB is not between 2MiB and 1GiB":    Size("s", 1<<20, 2<<20, 1<<30),
		"check s: 1048577 is not between 2 and 1MiB":    Size("s", 1<<20+1, 2, 1<<20),
		"check m: 1025KiB is more than 1MiB":            AtMost("m", 1025<<10, 1<<20),
		"check t: 999ms is not between 1s and 1m0s":     Time("t", 999*time.Millisecond, time.Second, time.Minute),
		"check t: 1m0.000000001s is not between 1s and": Time("t", time.Minute+1, time.Second, time.Minute),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAnAddressHasAPort(t *testing.T) {
	for _, good := range []string{":9126", "127.0.0.1:0", "[::1]:65535", "localhost:80"} {
		if err := Address("a", good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "9999", "127.0.0.1", ":99999", "127.0.0.1:-1", ":none-of-these", "::1:80"} {
		if err := Address("a", bad); err == nil || !strings.Contains(err.Error(), "check a: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
