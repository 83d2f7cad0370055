package rules

import (
	"math"
	"strconv"
	"strings"
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

// GRPCStatusTags are the tags that a gRPC status code stands in, in the order in
// which the agent asks for them. The last one counts only where TagRPCSystemName,
// or without that TagRPCSystem, is "grpc".
var GRPCStatusTags = [...]string{
	"rpc.grpc.status_code", "grpc.code", "rpc.grpc.status.code", "grpc.status.code",
	"rpc.response.status_code",
}

// The tags that say which system a remote call went through.
const (
	TagRPCSystemName = "rpc.system.name"
	TagRPCSystem     = "rpc.system"
)

// GRPCStatus is the status code of the span's call in decimal digits, "" where it
// has none that is known.
func GRPCStatus(t Tags) string {
	for i, key := range GRPCStatusTags {
		if i == len(GRPCStatusTags)-1 && !CallsGRPC(t.Text(TagRPCSystemName), t.Text(TagRPCSystem)) {
			continue
		}
		if text := t.Text(key); text != "" {
			return ParseGRPCStatus(text)
		}
		if n, ok := t.Number(key); ok {
			if code, ok := WholeNumber(n); ok {
				return ParseGRPCStatus(strconv.FormatInt(code, 10))
			}
		}
	}
	return ""
}

// CallsGRPC reports whether the two tags of a span say that it called by gRPC.
func CallsGRPC(systemName, system string) bool {
	return systemName == "grpc" || systemName == "" && system == "grpc"
}

// grpcNames are the names of the codes in capitals, as the protocol and as some
// tracers write them.
var grpcNames = map[string]string{
	"OK":                  "0",
	"CANCELLED":           "1",
	"CANCELED":            "1",
	"UNKNOWN":             "2",
	"INVALID_ARGUMENT":    "3",
	"INVALIDARGUMENT":     "3",
	"DEADLINE_EXCEEDED":   "4",
	"DEADLINEEXCEEDED":    "4",
	"NOT_FOUND":           "5",
	"NOTFOUND":            "5",
	"ALREADY_EXISTS":      "6",
	"ALREADYEXISTS":       "6",
	"PERMISSION_DENIED":   "7",
	"PERMISSIONDENIED":    "7",
	"RESOURCE_EXHAUSTED":  "8",
	"RESOURCEEXHAUSTED":   "8",
	"FAILED_PRECONDITION": "9",
	"FAILEDPRECONDITION":  "9",
	"ABORTED":             "10",
	"OUT_OF_RANGE":        "11",
	"OUTOFRANGE":          "11",
	"UNIMPLEMENTED":       "12",
	"INTERNAL":            "13",
	"UNAVAILABLE":         "14",
	"DATA_LOSS":           "15",
	"DATALOSS":            "15",
	"UNAUTHENTICATED":     "16",
}

// ParseGRPCStatus makes decimal digits of a code that was written as a number, as
// a name, or as a name behind "StatusCode.". It is "" for anything else.
func ParseGRPCStatus(text string) string {
	if code, ok := parseDigits(text); ok {
		return strconv.FormatUint(code, 10)
	}
	return grpcNames[strings.ToUpper(strings.TrimPrefix(text, "StatusCode."))]
}

// parseDigits reads a number without building an error for each name.
func parseDigits(text string) (uint64, bool) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	code, err := strconv.ParseUint(text, 10, 32)
	return code, err == nil
}
