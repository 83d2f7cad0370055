package http1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// heads begin messages that are plain, or just not.
var heads = map[string]bool{
	"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc":                              true,
	"POST /v0.4/traces HTTP/1.1\r\nHost:localhost:8126\r\ncontent-length:\t3 \r\nX-A: b\tc\xff\r\n\r\n": true,
	"GET /info HTTP/1.1\r\nHost: [::1]:8126\r\nConnection: Keep-Alive\r\n\r\n":                          true,
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: x\r\n\r\n{}":                                         true,
	// it is not whole
	"PUT /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n":                        false,
	"PUT /v0.4/traces HTTP/1.1\nHost: x\nContent-Length: 3\n\n":                            false,
	"PUT /v0.4/traces HTTP/1.1\r\nHost: x\nContent-Length: 3\r\n\r\n":                      false,
	"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n":          false,
	"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n":          false,
	"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\n":                            false,
	"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\n":                              false,
	"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\n":                                false,
	"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n":                      false,
	"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n": false,
	"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n":                     false,
	// a second line of the field
	"PUT / HTTP/1.1\r\nHost: x\r\n Transfer-Encoding: chunked\r\n\r\n":                    false,
	"PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n":                           false,
	"PUT / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n":                              false,
	"PUT / HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\n\r\n":                                   false,
	"PUT / HTTP/1.1\r\nHost: x\r\nTrailer: X\r\n\r\n":                                     false,
	"PUT / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n":                                        false,
	"PUT / HTTP/1.1\r\nHost: x y\r\n\r\n":                                                 false,
	"PUT / HTTP/1.1\r\nHost: x\r\nX-A: b\x00c\r\n\r\n":                                    false,
	"PUT / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n":                                            false,
	"PUT / HTTP/1.1\r\nHost: x\r\nX(A): b\r\n\r\n":                                        false,
	"PUT / HTTP/1.1\r\nHost: x\r\nno field\r\n\r\n":                                       false,
	"PUT /\x01 HTTP/1.1\r\nHost: x\r\n\r\n":                                               false,
	"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("a:\r\n", MaxHeaderLines-2) + "\r\n": true,
	"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("a:\r\n", MaxHeaderLines-1) +
		"\r\n": false,
}

func TestHeadsThatArePlain(t *testing.T) {
	for text, want := range heads {
		var h Head
		if got := h.Parse([]byte(text)); got != want {
			t.Errorf("%q: plain %v", text, got)
		}
	}
}

// TestRequestsThatMayBePlain, and answers: by their first lines and what they need.
func TestRequestsThatMayBePlain(t *testing.T) {
	for text, want := range map[string]bool{
		"PUT / HTTP/1.1\r\nHost: x\r\n\r\n":                                      true,
		"PUT / HTTP/1.1\r\nX: y\r\n\r\n":                                         false, // without a host
		"PUT / HTTP/1.0\r\nHost: x\r\n\r\n":                                      false,
		"PUT http://x/ HTTP/1.1\r\nHost: x\r\n\r\n":                              false,
		"PUT  / HTTP/1.1\r\nHost: x\r\n\r\n":                                     false,
		"PUT / HTTP/1.1 \r\nHost: x\r\n\r\n":                                     false,
		"CONNECT / HTTP/1.1\r\nHost: x\r\n\r\n":                                  false,
		"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n":                                     false,
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":                           true,
		"HTTP/1.1 429 \r\nContent-Length: 0\r\n\r\n":                             true,
		"HTTP/1.1 599\r\nContent-Length: 0\r\n\r\n":                              true,
		"HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n":                     false,
		"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n":                   false,
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 0\r\n\r\n":                 false,
		"HTTP/1.1 2000\r\nContent-Length: 0\r\n\r\n":                             false,
		"HTTP/1.1 +20\r\nContent-Length: 0\r\n\r\n":                              false,
		"HTTP/1.1 2xx\r\nContent-Length: 0\r\n\r\n":                              false,
		"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n":                           false,
		"HTTP/1.1 200 OK\r\nX: y\r\n\r\n":                                        false,
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n": false,
	} {
		var h Head
		if !h.Parse([]byte(text)) {
			t.Errorf("%q is not plain", text)
		}
		_, _, got := h.Request()
		if strings.HasPrefix(text, "HTTP/") {
			_, got = h.Answer()
		}
		if got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// FuzzHead: whatever is plain here net/http reads as the same request, or the same answer,
// with the same end.
func FuzzHead(f *testing.F) {
	for text := range heads {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var h Head
		if !h.Parse(text) {
			return
		}
		from := bytes.NewReader(text)
		buffered := bufio.NewReaderSize(from, 1<<16)
		if method, path, ok := h.Request(); ok {
			if strings.ContainsAny(path, "%#?\"<>^`{|}\\[]\x7f ") ||
				strings.IndexFunc(path, func(r rune) bool {
					return r < '!' || r > '~'
				}) >= 0 {
				return // it is no endpoint's, and net/http may refuse it
			}
			r, err := http.ReadRequest(buffered)
			if err != nil {
				t.Fatalf("net/http refuses %q: %v", text, err)
			}
			if r.Method != method || r.URL.Path != path || r.ContentLength != int64(max(0, h.Body)) ||
				r.Close || len(r.TransferEncoding) > 0 || r.Header.Get("Expect") != "" {
				t.Errorf("%q is another request to net/http: %v", text, r)
			}
			r.Header.Set("Host", r.Host) // which net/http takes out
			sameFields(t, text, h.Fields, r.Header)
			sameEnd(t, &h, text, r.Body, buffered)
		} else if _, ok := h.Answer(); ok {
			r, err := http.ReadResponse(buffered, nil)
			if err != nil {
				t.Fatalf("net/http refuses %q: %v", text, err)
			}
			if r.StatusCode/100 == 1 || r.ContentLength != int64(h.Body) || r.Close ||
				len(r.TransferEncoding) > 0 {
				t.Errorf("%q is another answer to net/http: %v", text, r)
			}
			sameFields(t, text, h.Fields, r.Header)
			sameEnd(t, &h, text, r.Body, buffered)
		}
	})
}

// sameFields holds the fields against those that net/http has read.
func sameFields(t *testing.T, text []byte, ours Fields, theirs http.Header) {
	t.Helper()
	got := http.Header{}
	for _, field := range ours {
		got[field.Name] = append(got[field.Name], field.Value)
	}
	for name, values := range theirs {
		if name == "Cache-Control" && theirs.Get("Pragma") != "" {
			continue // which net/http adds
		}
		if !slices.Equal(got[name], values) || theirs.Get(name) != ours.Get(name) {
			t.Errorf("%q: %s is %q to net/http, here %q", text, name, values, got[name])
		}
	}
	for name := range got {
		if _, ok := theirs[name]; !ok {
			t.Errorf("%q: net/http has no %s", text, name)
		}
	}
}

// sameEnd holds where the message ends against where it does for net/http.
func sameEnd(t *testing.T, h *Head, text []byte, body io.Reader, from *bufio.Reader) {
	t.Helper()
	end := h.Length + max(0, h.Body)
	if end > len(text) {
		return
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(from)
	if err != nil || !bytes.Equal(rest, text[end:]) {
		t.Errorf("%q ends at %d, for net/http before %q", text, end, rest)
	}
}

// TestFields: a name has one value once it is set, and what is about the connection is not
// handed on, whoever has read them.
func TestFields(t *testing.T) {
	lines := Fields{{"A", "1"}, {"B", "2"}, {"A", "3"}, {"Te", "x"}, {"Content-Length", "7"}}
	for _, f := range []Header{Map(lines.Map()), &lines} {
		f.Set("A", "4")
		f.Set("C", "5")
		f.Set("B", "6")
		f.Keep(IsForwarded)
		var to bytes.Buffer
		f.Write(&to)
		got := strings.Split(strings.TrimSuffix(to.String(), "\r\n"), "\r\n")
		slices.Sort(got)
		if !slices.Equal(got, []string{"A: 4", "B: 6", "C: 5"}) || f.Get("A") != "4" || f.Get("D") != "" ||
			len(f.Map()) != 3 {
			t.Errorf("%T: %q", f, got)
		}
	}
}
