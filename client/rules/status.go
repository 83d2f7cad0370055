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

// HTTPStatus returns the status code of the span's response, or 0 if there is none.
//
// The agent's receiver first removes a TagHTTPStatus that is not an integer from 100 to 599, see
// ValidHTTPStatus; the statistics of tracers do not.
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

// StatusOf returns a status code as uint32, or 0 if it is out of range.
func StatusOf(code int64) uint32 {
	if code < 0 || code > math.MaxUint32 {
		return 0
	}
	return uint32(code)
}

// ParseStatus parses an integer, which can have a fraction of zero, as in "200.0".
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

// WholeNumber converts a number to an integer, and reports whether it is one.
func WholeNumber(n float64) (int64, bool) {
	whole := int64(n)
	return whole, float64(whole) == n && !math.IsInf(n, 0)
}

// ValidHTTPStatus reports whether the agent's receiver keeps a TagHTTPStatus with this value.
func ValidHTTPStatus(text string) bool {
	code, err := strconv.ParseUint(text, 10, 64)
	return err == nil && code >= 100 && code < 600
}

// GRPCStatusTags are the tags that can contain a gRPC status code, in order of precedence in the
// agent. The last one is used only if TagRPCSystemName, or TagRPCSystem if that is missing, is
// "grpc".
var GRPCStatusTags = [...]string{
	"rpc.grpc.status_code", "grpc.code", "rpc.grpc.status.code", "grpc.status.code",
	"rpc.response.status_code",
}

// Tags for the system of a remote call.
const (
	TagRPCSystemName = "rpc.system.name"
	TagRPCSystem     = "rpc.system"
)

// GRPCStatus returns the status code of the span's call in decimal, or "" if there is none or it is
// unknown.
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

// CallsGRPC reports whether a span with these two tags is a gRPC call.
func CallsGRPC(systemName, system string) bool {
	return systemName == "grpc" || systemName == "" && system == "grpc"
}

// grpcNames maps the names of codes, in upper case and in the spellings of the protocol and of
// tracers, to the codes.
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

// ParseGRPCStatus converts a status code to decimal. The code can be a number, or a name with an
// optional prefix "StatusCode.". It returns "" for anything else.
func ParseGRPCStatus(text string) string {
	if code, ok := parseDigits(text); ok {
		return strconv.FormatUint(code, 10)
	}
	return grpcNames[strings.ToUpper(strings.TrimPrefix(text, "StatusCode."))]
}

// parseDigits parses a number. For names it returns false without allocating an error.
func parseDigits(text string) (uint64, bool) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	code, err := strconv.ParseUint(text, 10, 32)
	return code, err == nil
}
