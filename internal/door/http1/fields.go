package http1

import (
	"bytes"
	"net/http"
	"slices"
)

// Fields are the fields of a request or an answer in their order, with canonical names.
type Fields []Field

// Field is one of them.
type Field struct{ Name, Value string }

// endOfLine ends each line of a head, and a second one the head.
const endOfLine = "\r\n"

// FieldsOf are those of a header that net/http has read.
func FieldsOf(h http.Header) Fields {
	all := make(Fields, 0, len(h)+1) // often one is set besides
	for name, values := range h {
		for _, value := range values {
			all = append(all, Field{name, value})
		}
	}
	return all
}

// Get returns the first value of a name, "" where there is none.
func (f *Fields) Get(name string) string {
	for i := range *f {
		if (*f)[i].Name == name {
			return (*f)[i].Value
		}
	}
	return ""
}

// Set replaces all values of a name by one.
func (f *Fields) Set(name, value string) {
	f.Keep(func(known string) bool { return known != name })
	*f = append(*f, Field{name, value})
}

// Keep takes out those whose name may not be.
func (f *Fields) Keep(mayBe func(name string) bool) {
	*f = slices.DeleteFunc(*f, func(field Field) bool { return !mayBe(field.Name) })
}

// Header is the same as net/http has it.
func (f Fields) Header() http.Header {
	h := make(http.Header, len(f))
	for _, field := range f {
		h[field.Name] = append(h[field.Name], field.Value)
	}
	return h
}

// Write writes those as lines.
func (f Fields) Write(to *bytes.Buffer) {
	for _, field := range f {
		for _, text := range [...]string{field.Name, ": ", field.Value, endOfLine} {
			to.WriteString(text)
		}
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
