package otel

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// unknownService is what OpenTelemetry calls a service that says no name.
const unknownService = "unknown_service"

// origin makes the origin that a resource says, as it may be kept, with the attributes that are to be
// kept besides. The version of its SDK is written as the agent writes it.
func origin(r *otlp.Request, of *otlp.Resource, keep []keptAttribute) span.Origin {
	const longest = span.MaxOriginField + utf8.UTFMax // of what is copied
	// said is a copy of what it says by an attribute, of several by the first.
	said := func(l spantable.Label) string {
		tags := r.Tags[of.FirstTag:of.LastTag]
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
		return span.Text(string(text[:min(len(text), longest)]), span.MaxOriginField)
	}
	o := span.Origin{
		Service:         cmp.Or(said(labelService), unknownService),
		Env:             cmp.Or(said(labelEnvironment), said(labelOldEnvironment)),
		Version:         said(labelServiceVersion),
		Host:            said(labelHost),
		ContainerID:     said(labelContainer),
		RuntimeID:       said(labelInstance),
		Lang:            said(labelLanguage),
		LangVersion:     said(labelRuntimeVersion),
		LangInterpreter: said(labelRuntimeName),
		TracerVersion:   span.OTLPVersion + said(labelSDKVersion),
		GitCommitSHA:    said(labelCommit),
	}
	var attributes []byte
	for _, kept := range keep {
		attributes = span.AppendAttribute(attributes, kept.name, said(kept.label))
	}
	o.Attributes = string(attributes)
	o.Normalize()
	return o
}
