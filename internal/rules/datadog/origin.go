package datadog

import (
	"strings"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Origin is who sent the last body: said, which are the request's headers, completed by what the
// payload says, as the agent tells payloads of statistics apart. The base service, which goes by
// the trace, is each batch's own.
func (c *Counter) Origin(said span.Origin) span.Origin {
	s, o := &c.table.Senders[0], said
	o.Env, o.Version, o.Host = c.env(s.Env), c.clone(s.Version), c.clone(s.Host)
	o.GitCommitSHA = c.clone(s.Commit)
	o.ProcessTags = c.processTags(said.ProcessTags)
	if format := c.decoder.Format(); format == decode.FormatV07 || format == decode.FormatV1 {
		o.Lang = c.clone(s.Lang)
		if s.LangVersion.Len > 0 {
			o.LangVersion = c.clone(s.LangVersion)
		}
		if s.TracerVersion.Len > 0 {
			o.TracerVersion = c.clone(s.TracerVersion)
		}
		if s.Container.Len > 0 {
			o.ContainerID, o.EntityID = c.clone(s.Container), ""
		}
	}
	if c.book.statsLang != "" {
		o.Lang = c.book.statsLang
	}
	return o
}

// env is an environment. The agent writes that of traces as the value of a tag before it looks whether
// there is one, and that of statistics behind: so what becomes nothing there is none here.
func (c *Counter) env(said spantable.Text) string {
	env := c.clone(said)
	if !rules.IsTagValue([]byte(env)) && len(rules.AppendTagValue(nil, env)) == 0 {
		return ""
	}
	return env
}

// processTags are the payload's, else its first span's, else those that were said.
func (c *Counter) processTags(said string) string {
	if s := &c.table.Senders[0]; s.HasProcessTags {
		return c.clone(s.ProcessTags)
	}
	if len(c.table.Spans) > 0 {
		for _, t := range c.table.TagsOf(&c.table.Spans[0]) {
			if t.Label == decode.LabelProcessTags && t.Value == spantable.IsText {
				return c.clone(t.Text())
			}
		}
	}
	return said
}

// eachSender visits the senders of OTLP. Each may be kept as it is.
func (c *Counter) eachSender(yield func(span.Origin) bool) {
	for i := range c.table.Senders {
		s := &c.table.Senders[i]
		o := span.Origin{
			Env: c.env(s.Env), Version: c.clone(s.Version), Host: c.clone(s.Host),
			Lang: c.clone(s.Lang), TracerVersion: c.clone(s.TracerVersion),
			ContainerID: c.clone(s.Container), GitCommitSHA: c.clone(s.Commit),
		}
		if o.Normalize(); !yield(o) {
			return
		}
	}
}

// serviceNames remembers what became of service names that the agent rewrites, so that
// rewriting one again allocates nothing.
type serviceNames struct {
	lang  string
	known map[string]string
}

// maxNames bounds them. Somebody who makes up names gets each rewritten anew.
const maxNames = 1024

// reset keeps the names for the next tracer, if it speaks the same language: that
// is in the name of a service without one.
func (n *serviceNames) reset(lang string) {
	if n.known == nil || n.lang != lang {
		n.lang, n.known = lang, map[string]string{}
	}
}

// service is the name as the agent writes it. It is good for as long as the bytes
// are.
func (n *serviceNames) service(raw []byte) string {
	if span.IsServiceName(spantable.View(raw)) {
		return spantable.View(raw)
	}
	if name, ok := n.known[string(raw)]; ok {
		return name
	}
	name := span.ServiceName(spantable.View(raw), n.lang)
	if len(n.known) < maxNames && len(raw) <= span.MaxOriginField {
		name = strings.Clone(name) // which may be a part of them
		n.known[string(raw)] = name
	}
	return name
}

// peer is the name of another service, or of the process's own, "" where there
// is nothing to call it by.
func (n *serviceNames) peer(raw []byte) string {
	if len(raw) == 0 || span.IsServiceName(spantable.View(raw)) {
		return spantable.View(raw)
	}
	return span.PeerName(string(raw))
}
