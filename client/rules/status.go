package rules

import (
	"math"
	"strconv"
)

// The tags that an HTTP status code stands in.
const (
	TagHTTPStatus     = "http.status_code"
	TagOTelHTTPStatus = "http.response.status_code"
)

// HTTPStatus is the status code of the span's response, 0 where it has none.
//
// The agent's receiver first takes away a TagHTTPStatus that is no whole number
// from 100 to 599, see ValidHTTPStatus; a tracer's own statistics do not.
func HTTPStatus(t Tags) uint32 {
	for _, key := range [...]string{TagHTTPStatus, TagOTelHTTPStatus} {
		if n, ok := t.Number(key); ok {
			if code, ok := WholeNumber(n); ok {
				return StatusOf(code)
			}
		}
		if code, ok := ParseStatus(t.Text(key)); ok {
			return StatusOf(code)
		}
	}
	return 0
}

// StatusOf is a code that was found as a status, 0 where it can't be one.
func StatusOf(code int64) uint32 {
	if code < 0 || code > math.MaxUint32 {
		return 0
	}
	return uint32(code)
}

// ParseStatus reads a whole number from text, also from one like "200.0".
func ParseStatus(text string) (int64, bool) {
	if text == "" {
		return 0, false
	}
	if code, err := strconv.ParseInt(text, 10, 64); err == nil {
		return code, true
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		code := int64(f)
		return code, float64(code) == f
	}
	return 0, false
}

// WholeNumber is a number as an integer, if it is one.
func WholeNumber(n float64) (int64, bool) {
	whole := int64(n)
	return whole, float64(whole) == n && !math.IsInf(n, 0)
}

// ValidHTTPStatus reports whether the agent's receiver leaves a TagHTTPStatus
// that reads like this on the span.
func ValidHTTPStatus(text string) bool {
	code, err := strconv.ParseUint(text, 10, 64)
	return err == nil && code >= 100 && code < 600
}
