package traces

import (
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Origin is who sent the last body: said, which are the request's headers, completed by
// what the payload says, as the agent tells payloads of statistics apart. The base
// service, which goes by the trace, is each batch's own.
func (c *Counter) Origin(said span.Origin) span.Origin {
	f, o := &c.payload.facts, said
	o.Env, o.Version, o.Host, o.GitCommitSHA = c.clone(f.env), c.clone(f.version), c.clone(f.host), c.clone(f.commit)
	o.ProcessTags = c.processTags(said.ProcessTags)
	if c.payload.isV07() || c.payload.format == FormatV1 {
		o.Lang = c.clone(f.lang)
		if f.langVersion.Len > 0 {
			o.LangVersion = c.clone(f.langVersion)
		}
		if f.tracerVersion.Len > 0 {
			o.TracerVersion = c.clone(f.tracerVersion)
		}
		if f.container.Len > 0 {
			o.ContainerID, o.EntityID = c.clone(f.container), ""
		}
	}
	if c.rulebook.statsLang != "" {
		o.Lang = c.rulebook.statsLang
	}
	return o
}

// processTags are the payload's, else its first span's, else those that were said.
func (c *Counter) processTags(said string) string {
	p := &c.payload
	if p.facts.hasProcessTags {
		return c.clone(p.facts.processTags)
	}
	if len(p.records) > 0 {
		for _, t := range p.tags[p.records[0].first:p.records[0].last] {
			if t.label == labelProcessTags && t.kind == isText {
				return c.clone(t.text())
			}
		}
	}
	return said
}

// clone is a copy of a string of the body.
func (c *Counter) clone(t msgpack.Text) string { return string(c.text(t)) }
