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

// HTTPStatus returns the HTTP status code in the tags of a span, or 0 if there is none. The code can be outside the
// range from 100 to 599.
func HTTPStatus(t Tags) uint32 {
	for _, key := range [...]string{TagHTTPStatus, TagOTelHTTPStatus} {
		if code, ok := integerTag(t, key); ok {
			return StatusOf(code)
		}
	}
	return 0
}

// integerTag returns the value of a tag as an integer. The value can be a whole number, or a text such as "200" or
// "200.0". integerTag returns false for any other value.
func integerTag(t Tags, key string) (int64, bool) {
	if number, isSet := t.Number(key); isSet {
		if integer, isWhole := WholeNumber(number); isWhole {
			return integer, true
		}
	}
	return ParseInteger(t.Text(key))
}

// StatusOf converts a number to a status code. It returns 0 if the number is negative or has more than 32 bits.
func StatusOf(code int64) uint32 {
	if code < 0 || code > math.MaxUint32 {
		return 0
	}
	return uint32(code)
}

// ParseInteger parses an integer, which can also be written like "200.0". It returns false if text is not an integer.
func ParseInteger(text string) (int64, bool) {
	if text == "" {
		return 0, false
	}
	integer, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return integer, true
	}
	float, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false
	}
	integer = int64(float)
	return integer, float64(integer) == float
}

// WholeNumber converts a float64 to an integer. It returns false if n is not a whole number.
func WholeNumber(n float64) (int64, bool) {
	integer := int64(n)
	isWhole := float64(integer) == n && !math.IsInf(n, 0)
	return integer, isWhole
}

// ValidHTTPStatus reports whether text is a status code from 100 to 599. The Datadog agent removes all other values of
// TagHTTPStatus from the spans that it receives.
func ValidHTTPStatus(text string) bool {
	code, err := strconv.ParseUint(text, 10, 64)
	return err == nil && code >= 100 && code < 600
}

// GRPCStatusTags contains the tags that can contain the gRPC status code, in the order in which the agent
// reads them. The last one is read only if CallsGRPC returns true.
var GRPCStatusTags = [...]string{
	"rpc.grpc.status_code", "grpc.code", "rpc.grpc.status.code", "grpc.status.code",
	tagRPCStatus,
}

// tagRPCStatus is the tag with the status code of any RPC system.
const tagRPCStatus = "rpc.response.status_code"

// Tags that contain the name of the RPC system of a span.
const (
	TagRPCSystemName = "rpc.system.name"
	TagRPCSystem     = "rpc.system"
)

// GRPCStatus returns the gRPC status code in the tags of a span, in decimal digits. It returns "" if the tags
// contain no code, or a text that is neither a number nor the name of a code.
func GRPCStatus(t Tags) string {
	callsGRPC := CallsGRPC(t.Text(TagRPCSystemName), t.Text(TagRPCSystem))
	for _, name := range GRPCStatusTags {
		if name == tagRPCStatus && !callsGRPC {
			continue
		}
		if text := t.Text(name); text != "" {
			return ParseGRPCStatus(text)
		}
		number, isSet := t.Number(name)
		if !isSet {
			continue
		}
		if code, isWhole := WholeNumber(number); isWhole {
			return ParseGRPCStatus(strconv.FormatInt(code, 10))
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
	if code, ok := parseUint32(text); ok {
		return strconv.FormatUint(code, 10)
	}
	return grpcNames[strings.ToUpper(strings.TrimPrefix(text, "StatusCode."))]
}

// parseUint32 parses a decimal number. It returns false if text is not a number of at most 32 bits. Unlike
// strconv.ParseUint, it allocates no error for a text that begins with a letter, such as OK.
func parseUint32(text string) (uint64, bool) {
	startsWithDigit := text != "" && text[0] >= '0' && text[0] <= '9'
	if !startsWithDigit {
		return 0, false
	}
	code, err := strconv.ParseUint(text, 10, 32)
	return code, err == nil
}
