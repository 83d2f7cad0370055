package otel

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// unknownService is OpenTelemetry's name for a service without a name.
const unknownService = "unknown_service"

// isGo reports whether a resource describes a process with Go's SDK.
func isGo(r *otlp.Request, res *otlp.Resource) bool {
	for i := res.FirstTag; i < res.LastTag; i++ {
		if t := &r.Tags[i]; t.Label == labelLanguage {
			return t.Value == spantable.IsText && r.String(t.Text()) == "go"
		}
	}
	return false
}

// origin returns the origin that a resource describes, including the attributes in keep. The result
// does not retain the request. The SDK version is formatted like the agent formats it.
func origin(r *otlp.Request, res *otlp.Resource, keep []keptAttribute) span.Origin {
	const maxCopy = span.MaxOriginField + utf8.UTFMax // bytes of a value; span.Text cuts the rest
	// copyOf returns a copy of the first value of an attribute, or an empty string.
	copyOf := func(l spantable.Label) string {
		tags := r.Tags[res.FirstTag:res.LastTag]
		i := slices.IndexFunc(tags, func(t spantable.Tag) bool { return t.Label == l })
		if i < 0 {
			return ""
		}
		var text []byte
		if tags[i].Value == spantable.IsText {
			text = r.Bytes(tags[i].Text())
		} else {
			text = r.AppendValue(nil, &tags[i])
		}
		return span.Text(string(text[:min(len(text), maxCopy)]), span.MaxOriginField)
	}
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
		TracerVersion:   span.OTLPVersion + copyOf(labelSDKVersion),
		GitCommitSHA:    copyOf(labelCommit),
	}
	var attributes []byte
	for _, kept := range keep {
		attributes = span.AppendAttribute(attributes, kept.name, copyOf(kept.label))
	}
	o.Attributes = string(attributes)
	o.Normalize()
	return o
}
