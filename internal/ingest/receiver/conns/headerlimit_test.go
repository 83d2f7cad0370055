package conns

import (
	"strings"
	"testing"
)

// TestHeaderLimit checks that the lines of a header are counted for all sizes of reads, but not the lines of
// bodies, and not over HTTP/2.
func TestHeaderLimit(t *testing.T) {
	lines := func(n int) string { return "GET / HTTP/1.1\r\n" + strings.Repeat("a:\r\n", n) + "\r\n" }
	body := strings.Repeat("\n", 2*MaxHeaderLines)
	for text, want := range map[string]bool{
		lines(10):                                true,
		lines(MaxHeaderLines - 2):                true,
		lines(MaxHeaderLines + 1):                false,
		"\r\n\r\n" + lines(10):                   true,
		lines(10) + body:                         true,
		http2Preface + body:                      true,
		strings.Repeat("a:\n", MaxHeaderLines+1): false,
		"PRI * HTTP/2.0\r\n" + strings.Repeat("a:\n", MaxHeaderLines): false,
	} {
		for _, size := range []int{1, 7, len(text)} {
			var h headerLimit
			isWithin := true
			for rest := text; rest != "" && isWithin; {
				n := min(size, len(rest))
				isWithin = h.count([]byte(rest[:n]))
				rest = rest[n:]
			}
			if isWithin != want {
				t.Errorf("%.30q..., in pieces of %d: within the limit %v", text, size, isWithin)
			}
			if h.isHTTP2.Load() != strings.HasPrefix(text, http2Preface) {
				t.Errorf("%.30q: HTTP/2 %v", text, h.isHTTP2.Load())
			}
		}
	}
}

// TestHeaderLimit_EachRequest checks that the count restarts after each request.
func TestHeaderLimit_EachRequest(t *testing.T) {
	var h headerLimit
	header := []byte("GET / HTTP/1.1\r\n" + strings.Repeat("a:\r\n", MaxHeaderLines/2+2) + "\r\n")
	for range 3 {
		if !h.count(header) {
			t.Error("lines of earlier requests count")
		}
		h.complete()
		if !h.count([]byte(strings.Repeat("\n", 2*MaxHeaderLines))) {
			t.Error("lines of a body count")
		}
		h.reset()
	}
}
