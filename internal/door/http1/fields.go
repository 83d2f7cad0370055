package http1

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Header is the fields of a request, as who has read it keeps them: this package or net/http.
type Header interface {
	// Get returns the first value of a name, "" where there is none; Set replaces all by one.
	Get(name string) string
	Set(name, value string)
	// Keep takes out those whose name may not be.
	Keep(mayBe func(name string) bool)
	// Write writes them as lines, and Map returns them as net/http has them.
	Write(to *bytes.Buffer)
	Map() http.Header
}

// Map is those that net/http has read.
type Map http.Header

func (m Map) Get(name string) string { return http.Header(m).Get(name) }

func (m Map) Set(name, value string) {
	if before := m[name]; len(before) == 1 {
		before[0] = value
	} else {
		m[name] = []string{value}
	}
}

func (m Map) Keep(mayBe func(name string) bool) {
	maps.DeleteFunc(m, func(name string, _ []string) bool { return !mayBe(name) })
}

func (m Map) Write(to *bytes.Buffer) {
	for name, values := range m {
		for _, value := range values {
			writeLine(to, name, value)
		}
	}
}

func (m Map) Map() http.Header { return http.Header(m) }

// Fields are those of a plain message in their order, with canonical names.
type Fields []Field

// Field is one of them.
type Field struct{ Name, Value string }

// endOfLine ends each line of a head, and a second one the head.
const endOfLine = "\r\n"

func (f *Fields) Get(name string) string {
	for i := range *f {
		if (*f)[i].Name == name {
			return (*f)[i].Value
		}
	}
	return ""
}

func (f *Fields) Set(name, value string) {
	f.Keep(func(known string) bool { return known != name })
	*f = append(*f, Field{name, value})
}

func (f *Fields) Keep(mayBe func(name string) bool) {
	*f = slices.DeleteFunc(*f, func(field Field) bool { return !mayBe(field.Name) })
}

func (f *Fields) Write(to *bytes.Buffer) {
	for _, field := range *f {
		writeLine(to, field.Name, field.Value)
	}
}

func (f *Fields) Map() http.Header {
	h := make(http.Header, len(*f))
	for _, field := range *f {
		h[field.Name] = append(h[field.Name], field.Value)
	}
	return h
}

func writeLine(to *bytes.Buffer, name, value string) {
	for _, text := range [...]string{name, ": ", value, endOfLine} {
		to.WriteString(text)
	}
}

// notForwarded are the fields of a request that end with it, because they are about the
// connection, or that are written anew.
var notForwarded = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Upgrade": true, "Expect": true,
	"Proxy-Connection": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true,
	"Forwarded": true, "X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true,
	"Host": true, "Content-Length": true,
}

// IsForwarded says whether a field of a request is none of those that end with it, as every
// proxy has it.
func IsForwarded(name string) bool { return !notForwarded[name] }

// IsNamed says whether a field is one that Connection names.
func IsNamed(named, field string) bool {
	for name := range strings.SplitSeq(named, ",") {
		if strings.EqualFold(strings.TrimSpace(name), field) {
			return true
		}
	}
	return false
}
