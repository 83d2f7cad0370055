package datadog

import (
	"strings"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Origin returns the origin of the last body. It takes the environment, version, host, commit and
// process tags from the body, and all other fields from headers unless the body has them too. It
// does not set the service, because each batch has its own.
func (c *Counter) Origin(headers span.Origin) span.Origin {
	s := &c.table.Senders[0]
	o := headers
	o.Env, o.Version, o.Host = c.env(s.Env), c.cloneText(s.Version), c.cloneText(s.Host)
	o.GitCommitSHA = c.cloneText(s.Commit)
	o.ProcessTags = c.processTags(headers.ProcessTags)
	format := c.decoder.Format()
	bodyDescribesTracer := format == decode.FormatV07 || format == decode.FormatV1
	if bodyDescribesTracer {
		o.Lang = c.cloneText(s.Lang)
		if s.LangVersion.Len > 0 {
			o.LangVersion = c.cloneText(s.LangVersion)
		}
		if s.TracerVersion.Len > 0 {
			o.TracerVersion = c.cloneText(s.TracerVersion)
		}
		if s.Container.Len > 0 {
			o.ContainerID = c.cloneText(s.Container)
			o.EntityID = ""
		}
	}
	if c.rulebook.statsLang != "" {
		o.Lang = c.rulebook.statsLang
	}
	return o
}

// env returns a copy of an environment, or an empty string if it has no character that is valid in
// a tag value. The agent replaces such an environment by its own, as it does with an empty one.
func (c *Counter) env(text spantable.Text) string {
	env := c.cloneText(text)
	if !rules.IsTagValue([]byte(env)) && len(rules.AppendTagValue(nil, env)) == 0 {
		return ""
	}
	return env
}

// processTags returns the process tags of the body. If the body itself has none, it returns those
// of the first span, and otherwise header, those of the request's headers.
func (c *Counter) processTags(header string) string {
	if s := &c.table.Senders[0]; s.HasProcessTags {
		return c.cloneText(s.ProcessTags)
	}
	if len(c.table.Spans) > 0 {
		for _, t := range c.table.TagsOf(&c.table.Spans[0]) {
			if t.Label == decode.LabelProcessTags && t.Value == spantable.IsText {
				return c.cloneText(t.Text())
			}
		}
	}
	return header
}

// eachSenderOrigin iterates over the origins of the senders of an OTLP request. The origins are
// copies, which remain valid after the request.
func (c *Counter) eachSenderOrigin(yield func(span.Origin) bool) {
	for i := range c.table.Senders {
		s := &c.table.Senders[i]
		o := span.Origin{
			Env: c.env(s.Env), Version: c.cloneText(s.Version), Host: c.cloneText(s.Host),
			Lang: c.cloneText(s.Lang), TracerVersion: c.cloneText(s.TracerVersion),
			ContainerID: c.cloneText(s.Container), GitCommitSHA: c.cloneText(s.Commit),
		}
		o.Normalize()
		if !yield(o) {
			return
		}
	}
}

// serviceNames caches normalized service names, so that normalizing a name again allocates nothing.
type serviceNames struct {
	lang  string
	cache map[string]string // normalized names by name
}

// maxNames is the maximum number of cached names. Further names are normalized at each use.
const maxNames = 1024

// reset sets the language of the tracer that sent the next body. It clears the cache if the
// language changes, because the default name of a service contains the language.
func (n *serviceNames) reset(lang string) {
	if n.cache == nil || n.lang != lang {
		n.lang = lang
		n.cache = map[string]string{}
	}
}

// normalize returns the name of a service as the agent normalizes it. The result is valid as long
// as name, because it can share its memory.
func (n *serviceNames) normalize(name []byte) string {
	if span.IsServiceName(spantable.View(name)) {
		return spantable.View(name)
	}
	if normalized, isCached := n.cache[string(name)]; isCached {
		return normalized
	}
	normalized := span.ServiceName(spantable.View(name), n.lang)
	if len(n.cache) < maxNames && len(name) <= span.MaxOriginField {
		normalized = strings.Clone(normalized)
		n.cache[string(name)] = normalized
	}
	return normalized
}

// normalizePeer returns the name of a peer service or base service as the agent normalizes it.
func (n *serviceNames) normalizePeer(raw []byte) string {
	if len(raw) == 0 || span.IsServiceName(spantable.View(raw)) {
		return spantable.View(raw)
	}
	return span.PeerName(string(raw))
}
