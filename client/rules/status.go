package rules

import (
	"math"
	"strconv"
	"strings"
)

// Tags that can contain the HTTP status code.
const (
	TagHTTPStatus     = "http.status_code"
	TagOTelHTTPStatus = "http.response.status_code"
)

// HTTPStatus returns the status code of the span's response, or 0 if it has none.
//
// The agent's receiver removes invalid values of TagHTTPStatus first, see ValidHTTPStatus; tracers that
// compute statistics do not.
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

// StatusOf converts the number of a tag to a status code. It returns 0 for numbers that cannot be one.
func StatusOf(code int64) uint32 {
	if code < 0 || code > math.MaxUint32 {
		return 0
	}
	return uint32(code)
}

// ParseStatus parses an integer, which can also be written like "200.0".
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

// WholeNumber converts a float64 to an integer. It returns false if n is not a whole number.
func WholeNumber(n float64) (int64, bool) {
	integer := int64(n)
	isWhole := float64(integer) == n && !math.IsInf(n, 0)
	return integer, isWhole
}

// ValidHTTPStatus reports whether text is a valid value of TagHTTPStatus for the agent's receiver, which
// removes other values from the span.
func ValidHTTPStatus(text string) bool {
	code, err := strconv.ParseUint(text, 10, 64)
	return err == nil && code >= 100 && code < 600
}

// GRPCStatusTags contains the tags that can contain the gRPC status code, in the order in which the agent
// reads them. The last one is read only if CallsGRPC returns true.
var GRPCStatusTags = [...]string{
	"rpc.grpc.status_code", "grpc.code", "rpc.grpc.status.code", "grpc.status.code",
	"rpc.response.status_code",
}

// Tags that contain the name of the RPC system of a span.
const (
	TagRPCSystemName = "rpc.system.name"
	TagRPCSystem     = "rpc.system"
)

// GRPCStatus returns the status code of the span's call in decimal digits, or "" if there is no known one.
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

// CallsGRPC reports whether a span is a gRPC call according to its tags TagRPCSystemName and TagRPCSystem.
func CallsGRPC(systemName, system string) bool {
	return systemName == "grpc" || systemName == "" && system == "grpc"
}

// grpcNames maps the names of status codes in upper case, as in the protocol and as in some tracers, to
// their numbers.
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

// ParseGRPCStatus converts a status code, which is a number or a name with or without the prefix
// "StatusCode.", to decimal digits. It returns "" for all other texts.
func ParseGRPCStatus(text string) string {
	if code, ok := parseDigits(text); ok {
		return strconv.FormatUint(code, 10)
	}
	return grpcNames[strings.ToUpper(strings.TrimPrefix(text, "StatusCode."))]
}

// parseDigits parses a number. Unlike ParseUint, it allocates no error for a name.
func parseDigits(text string) (uint64, bool) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	code, err := strconv.ParseUint(text, 10, 32)
	return code, err == nil
}
