package rules

import (
	"slices"
	"strings"
)

// The tags that decide whether a span is counted.
const (
	TagTopLevel       = "_top_level"          // 1: the agent found it to be top-level
	TagTracerTopLevel = "_dd.top_level"       // 1: its tracer did
	TagMeasured       = "_dd.measured"        // 1: count it whatever else it is
	TagPartialVersion = "_dd.partial_version" // 0 or more: a snapshot of a span that still runs
	TagKind           = "span.kind"
)

// Kinds are the span kinds that the agent counts unless /info says otherwise.
var Kinds = []string{"client", "consumer", "producer", "server"}

// Eligible reports whether the agent would count the span: it is top-level,
// measured, or of one of the kinds, and has finished. kinds are those of the
// daemon's Features, in lower case.
func Eligible(t Tags, kinds []string) bool {
	return (IsTopLevel(t) || isOne(t, TagMeasured) || CountsKind(t.Text(TagKind), kinds)) && !IsPartial(t)
}

// IsTopLevel reports whether the span was marked as the one through which its
// trace entered a service. See TopLevel for who marks it.
func IsTopLevel(t Tags) bool { return isOne(t, TagTopLevel) || isOne(t, TagTracerTopLevel) }

// IsPartial reports whether this is a snapshot of a span that still runs.
func IsPartial(t Tags) bool {
	version, ok := t.Number(TagPartialVersion)
	return ok && version >= 0
}

// CountsKind reports whether a span of that kind is counted for it alone.
func CountsKind(kind string, kinds []string) bool {
	return kind != "" && slices.Contains(kinds, strings.ToLower(kind))
}

// Synthetics reports whether a trace of that origin came from a synthetic test.
func Synthetics(origin string) bool { return strings.HasPrefix(origin, "synthetics") }

func isOne(t Tags, key string) bool {
	n, ok := t.Number(key)
	return ok && n == 1
}
