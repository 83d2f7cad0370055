package oteltraces

import (
	"cmp"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// unknownService is what OpenTelemetry calls a service that says no name.
const unknownService = "unknown_service"

// origin makes the origin that a resource says, as it may be kept. The version of its SDK is
// written as the agent writes it.
func (p *payload) origin(r *resource) *span.Origin {
	o := &span.Origin{
		Service:         cmp.Or(p.said(r, labelService), unknownService),
		Env:             cmp.Or(p.said(r, labelEnvironment), p.said(r, labelOldEnvironment)),
		Version:         p.said(r, labelServiceVersion),
		Host:            p.said(r, labelHost),
		ContainerID:     p.said(r, labelContainer),
		RuntimeID:       p.said(r, labelInstance),
		Lang:            p.said(r, labelLanguage),
		LangVersion:     p.said(r, labelRuntimeVersion),
		LangInterpreter: p.said(r, labelRuntimeName),
		TracerVersion:   span.OTLPVersion + p.said(r, labelSDKVersion),
		GitCommitSHA:    p.said(r, labelCommit),
	}
	o.Normalize()
	return o
}

// origin is that of a resource, which never changes.
func (c *Counter) origin(r *resource) *span.Origin {
	said := r.said.of(c.payload.body)
	if len(said) > mostSaid {
		return c.payload.origin(r)
	}
	return c.origins.of(said, func() *span.Origin { return c.payload.origin(r) })
}

// said is a copy of what a resource says by an attribute, of several by the first.
func (p *payload) said(r *resource, l label) string {
	for i := r.firstTag; i < r.lastTag; i++ {
		if t := &p.tags[i]; t.label == l {
			return span.Text(string(t.append(nil, p.body)), span.MaxOriginField)
		}
	}
	return ""
}
