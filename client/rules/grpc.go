package rules

import (
	"strconv"
	"strings"
)

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
