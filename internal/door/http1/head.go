package http1

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
)

// Head is the first line and the fields of a plain message: one that states the length of
// its body, or has none, and asks for nothing else of its connection. Whatever is accepted
// here net/http reads as the same message; what is not is left to it.
type Head struct {
	Line   string // the first
	Fields Fields
	Length int // of the head, in bytes
	Body   int // of the body, negative where none is stated
	host   int // how many there are
}

// MaxHead is longer than the head of any tracer's or SDK's request. Each connection has room
// for one.
const MaxHead = 4 << 10

// Parse reads the head that a text begins with, and reports whether it is there whole, and
// plain.
func (h *Head) Parse(text []byte) bool {
	end := bytes.Index(text, []byte(endOfLine+endOfLine))
	if end < 0 {
		return false
	}
	h.Fields, h.Length, h.Body, h.host = h.Fields[:0], end+2*len(endOfLine), -1, 0
	rest := string(text[:end])
	h.Line, rest, _ = strings.Cut(rest, endOfLine)
	if !isPrinted(h.Line) {
		return false
	}
	for line := ""; rest != ""; {
		line, rest, _ = strings.Cut(rest, endOfLine)
		if len(h.Fields) == MaxHeaderLines-1 || !h.add(line) {
			return false
		}
	}
	return true
}

// add reads the line of a field.
func (h *Head) add(line string) bool {
	name, value, ok := strings.Cut(line, ":")
	if !ok || !isToken(name) || !isPrinted(value) {
		return false
	}
	name, value = http.CanonicalHeaderKey(name), strings.Trim(value, " \t")
	switch name {
	case "Content-Length":
		if h.Body >= 0 || !h.setBody(value) {
			return false
		}
	case "Host":
		if h.host++; h.host > 1 || strings.Trim(value, hostCharacters) != "" {
			return false
		}
	case "Connection":
		if !strings.EqualFold(value, "keep-alive") {
			return false
		}
	case "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Expect", "Keep-Alive", "Proxy-Connection",
		"Proxy-Authenticate":
		return false
	}
	h.Fields = append(h.Fields, Field{name, value})
	return true
}

// setBody reads the length of the body, which has no more digits than any has.
func (h *Head) setBody(digits string) bool {
	h.Body = 0
	for _, digit := range []byte(digits) {
		if digit < '0' || digit > '9' {
			return false
		}
		h.Body = 10*h.Body + int(digit-'0')
	}
	return len(digits) > 0 && len(digits) <= 9
}

// Request reads the first line of a request that has a host.
func (h *Head) Request() (method, path string, ok bool) {
	method, rest, _ := strings.Cut(h.Line, " ")
	path, version, _ := strings.Cut(rest, " ")
	isKnown := method == http.MethodPost || method == http.MethodPut || method == http.MethodGet
	return method, path, isKnown && strings.HasPrefix(path, "/") && version == "HTTP/1.1" && h.host == 1
}

// Answer reads the first line of an answer that has a length, and is not about the
// connection.
func (h *Head) Answer() (status int, ok bool) {
	version, rest, _ := strings.Cut(h.Line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	isWhole := err == nil && len(code) == 3 && status >= 200 &&
		status != http.StatusNoContent && status != http.StatusNotModified
	return status, isWhole && version == "HTTP/1.1" && h.Body >= 0 && h.Fields.Get("Connection") == ""
}

// hostCharacters are those of a name or an address with a port.
const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]"

// isToken says whether a text can be a field's name.
func isToken(text string) bool {
	for _, c := range []byte(text) {
		isLetter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !isLetter && c != '-' && c != '_' && (c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}

// isPrinted says whether a text is free of control characters.
func isPrinted(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
