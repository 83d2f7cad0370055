package otel

import (
	"cmp"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// unknownService is OpenTelemetry's name for a service without a name.
const unknownService = "unknown_service"

// isGo reports whether the spans of a resource are from OpenTelemetry's SDK for Go.
func isGo(r *otlp.Request, res *otlp.Resource) bool {
	t := findTag(r, res, labelLanguage)
	return t != nil && t.Type == spantable.TypeText && r.String(t.Text()) == "go"
}

// isCountedByClient reports whether the client has counted the spans of a resource itself: whether the
// attribute otlp.StatsComputed, which has the given label, is neither empty nor false.
func isCountedByClient(r *otlp.Request, res *otlp.Resource, computed spantable.Label) bool {
	value := copyAttribute(r, res, computed)
	return value != "" && value != "false"
}

// findTag returns the first tag of a resource with the given label, or nil if there is none.
func findTag(r *otlp.Request, res *otlp.Resource, label spantable.Label) *spantable.Tag {
	for i := res.TagStart; i < res.TagEnd; i++ {
		if r.Tags[i].Label == label {
			return &r.Tags[i]
		}
	}
	return nil
}

// copyAttribute returns a copy of the value of a resource attribute as text, truncated to
// span.MaxOriginField bytes. It returns "" if the resource does not have the attribute.
func copyAttribute(r *otlp.Request, res *otlp.Resource, label spantable.Label) string {
	t := findTag(r, res, label)
	if t == nil {
		return ""
	}
	var value []byte
	if t.Type == spantable.TypeText {
		value = r.Bytes(t.Text())
	} else {
		value = r.AppendValue(nil, t)
	}
	// span.Text truncates the copy. It needs all bytes of the last character, to not truncate within it.
	const maxCopy = span.MaxOriginField + utf8.UTFMax
	copied := string(value[:min(len(value), maxCopy)])
	return span.Text(copied, span.MaxOriginField)
}

// originOf returns the origin of the spans of a resource: a description of the process that sent them,
// including the additional attributes. All texts are copies, so the origin remains valid when the request
// changes.
func originOf(r *otlp.Request, res *otlp.Resource, additional []originAttribute) span.Origin {
	copyOf := func(label spantable.Label) string { return copyAttribute(r, res, label) }
	o := span.Origin{
		Service:         cmp.Or(copyOf(labelService), unknownService),
		Env:             cmp.Or(copyOf(labelEnvironment), copyOf(labelOldEnvironment)),
		Version:         copyOf(labelServiceVersion),
		Host:            copyOf(labelHost),
		ContainerID:     copyOf(labelContainer),
		RuntimeID:       copyOf(labelInstance),
		Lang:            copyOf(labelLanguage),
		LangVersion:     copyOf(labelRuntimeVersion),
		LangInterpreter: copyOf(labelRuntimeName),
		TracerVersion:   span.OTLPVersion + copyOf(labelSDKVersion), // in the Datadog agent's format
		GitCommitSHA:    copyOf(labelCommit),
	}
	var attributes []byte
	for _, a := range additional {
		attributes = span.AppendAttribute(attributes, a.name, copyOf(a.label))
	}
	o.Attributes = string(attributes)
	o.Normalize()
	return o
}
