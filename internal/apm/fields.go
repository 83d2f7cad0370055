package apm

import (
	"bytes"
	"net/http"
)

// header is the fields of a request, however they are kept.
type header interface {
	Get(name string) string
	Set(name, value string)
}

// fields are the fields of a request or an answer in their order, with canonical names.
type fields []field

type field struct{ name, value string }

// fieldsOf are those of a header that net/http has read.
func fieldsOf(h http.Header) (all fields) {
	for name, values := range h {
		for _, value := range values {
			all = append(all, field{name, value})
		}
	}
	return all
}

// Get returns the first value of a name, "" where there is none.
func (f *fields) Get(name string) string {
	for i := range *f {
		if (*f)[i].name == name {
			return (*f)[i].value
		}
	}
	return ""
}

// Set replaces all values of a name by one.
func (f *fields) Set(name, value string) {
	left := (*f)[:0]
	for _, field := range *f {
		if field.name != name {
			left = append(left, field)
		}
	}
	*f = append(left, field{name, value})
}

// notForwarded are the fields of a request that end here, because they are about the
// connection, or that are written anew.
var notForwarded = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Expect": true,
	"Forwarded": true, "X-Forwarded-For": true, "X-Forwarded-Host": true, "X-Forwarded-Proto": true,
	"Host": true, "Content-Length": true,
}

// write writes what is forwarded of a request's.
func (f fields) write(to *bytes.Buffer) {
	for _, field := range f {
		if !notForwarded[field.name] {
			for _, text := range [...]string{field.name, ": ", field.value, "\r\n"} {
				to.WriteString(text)
			}
		}
	}
}
