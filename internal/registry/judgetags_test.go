package registry

import (
	"strings"
	"testing"
)

// TestATagIsCutBehindItsKey: whatever tag key was found before it.
func TestATagIsCutBehindItsKey(t *testing.T) {
	for _, last := range []string{"", "host", "hostname"} {
		for _, tag := range []string{"", ":", ":web", "host", "host:", "host:web", "host:web:80", "hostname", "hostname:web", "hos:t"} {
			key, value, _ := strings.Cut(tag, ":")
			f := found{text: last}
			if k, v := f.cut(tag); k != key || v != value {
				t.Errorf("%q behind %q is cut into %q and %q", tag, last, k, v)
			}
		}
	}
}
