package http1

import (
	"strings"
	"testing"
)

// TestHeadersOfManyLines: however its bytes are cut, a header is counted to its end and
// nothing behind it, and each request has its own.
func TestHeadersOfManyLines(t *testing.T) {
	header := func(lines int, end string) string {
		return "GET / HTTP/1.1" + end + strings.Repeat("a: b"+end, lines-1) + end
	}
	behind := strings.Repeat("\n", 2*MaxHeaderLines)
	for name, test := range map[string]struct {
		bytes string
		fits  bool
	}{
		"as many as fit":           {header(MaxHeaderLines, "\r\n") + behind, true},
		"one more":                 {header(MaxHeaderLines+1, "\r\n"), false},
		"as many, bare":            {header(MaxHeaderLines, "\n") + behind, true},
		"one more, bare":           {header(MaxHeaderLines+1, "\n"), false},
		"none that is ended":       {strings.Repeat("a\r\n", MaxHeaderLines), true},
		"lines of nothing yet":     {"GET / HTTP/1.1\r", true},
		"one more, behind nothing": {"\r\n\r\n" + header(MaxHeaderLines+1, "\r\n"), false},
	} {
		for _, piece := range []int{1, 3, 4096} {
			var h HeaderLimit
			h.Reset()
			fits := true
			for rest := test.bytes; rest != "" && fits && !h.Done.Load(); {
				n := min(piece, len(rest))
				fits = h.Count([]byte(rest[:n]))
				rest = rest[n:]
			}
			if fits != test.fits {
				t.Errorf("%s, in pieces of %d: %v", name, piece, fits)
			}
		}
	}
}
