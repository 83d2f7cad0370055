package datadog

import (
	"strings"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Origin returns the origin of the last body. headers is the origin in the request's headers; the
// fields that distinguish the agent's statistics payloads are replaced by those of the trace
// payload. The base service is not set, because it differs between batches.
func (c *Counter) Origin(headers span.Origin) span.Origin {
	s, o := &c.table.Senders[0], headers
	o.Env, o.Version, o.Host = c.env(s.Env), c.clone(s.Version), c.clone(s.Host)
	o.GitCommitSHA = c.clone(s.Commit)
	o.ProcessTags = c.processTags(headers.ProcessTags)
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

// env returns the environment of a sender. If its normalized form is empty, env returns an empty
// string, because the agent then uses its own environment: it normalizes the environment of traces
// before it tests whether it is empty.
func (c *Counter) env(text spantable.Text) string {
	env := c.clone(text)
	if !rules.IsTagValue([]byte(env)) && len(rules.AppendTagValue(nil, env)) == 0 {
		return ""
	}
	return env
}

// processTags returns the process tags of the payload, otherwise those of its first span, otherwise
// those of the request's headers.
func (c *Counter) processTags(header string) string {
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
	return header
}

// eachSender iterates over the origins of the senders of an OTLP request. The origins stay valid.
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

// serviceNames caches normalized service names, so that normalizing a name again allocates nothing.
type serviceNames struct {
	lang  string
	known map[string]string // normalized name by name
}

// maxNames is the maximum number of cached names. Further names are normalized at each use.
const maxNames = 1024

// reset prepares for a body of the given language. It clears the cache if the language changes,
// because the default name of a service contains the language.
func (n *serviceNames) reset(lang string) {
	if n.known == nil || n.lang != lang {
		n.lang, n.known = lang, map[string]string{}
	}
}

// service returns the service name as the agent normalizes it. The result is valid as long as raw.
func (n *serviceNames) service(raw []byte) string {
	if span.IsServiceName(spantable.View(raw)) {
		return spantable.View(raw)
	}
	if name, ok := n.known[string(raw)]; ok {
		return name
	}
	name := span.ServiceName(spantable.View(raw), n.lang)
	if len(n.known) < maxNames && len(raw) <= span.MaxOriginField {
		name = strings.Clone(name) // name may be a part of raw
		n.known[string(raw)] = name
	}
	return name
}

// peer returns the name of a peer's or a base service as the agent normalizes it.
func (n *serviceNames) peer(raw []byte) string {
	if len(raw) == 0 || span.IsServiceName(spantable.View(raw)) {
		return spantable.View(raw)
	}
	return span.PeerName(string(raw))
}
