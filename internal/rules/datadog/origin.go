package datadog

import (
	"strings"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Origin returns a description of the process that sent the last body, and of its tracer. headers is the
// description in the headers of the request; fields of the body take precedence. Origin does not set the
// service, because each batch of the body can have another one.
func (c *Counter) Origin(headers span.Origin) span.Origin {
	sender := &c.table.Senders[0] // the body of a tracer has only one
	origin := headers
	origin.Env = c.cloneEnv(sender.Env)
	origin.Version = c.cloneText(sender.Version)
	origin.Host = c.cloneText(sender.Host)
	origin.GitCommitSHA = c.cloneText(sender.Commit)
	origin.ProcessTags = c.processTags(headers.ProcessTags)
	format := c.decoder.Format()
	hasTracerFields := format == decode.FormatV07 || format == decode.FormatV1 // bodies of earlier formats do not
	if hasTracerFields {
		c.setTracerFields(&origin, sender)
	}
	if c.rulebook.statsLang != "" {
		origin.Lang = c.rulebook.statsLang // the name of the language in statistics that the tracer computes
	}
	return origin
}

// setTracerFields copies the language, its version, the tracer's version and the container ID from sender
// to origin. Except for the language, it copies no empty field. A container ID replaces the entity ID.
func (c *Counter) setTracerFields(origin *span.Origin, sender *spantable.Sender) {
	origin.Lang = c.cloneText(sender.Lang)
	if sender.LangVersion.Len > 0 {
		origin.LangVersion = c.cloneText(sender.LangVersion)
	}
	if sender.TracerVersion.Len > 0 {
		origin.TracerVersion = c.cloneText(sender.TracerVersion)
	}
	if sender.Container.Len > 0 {
		origin.ContainerID = c.cloneText(sender.Container)
		origin.EntityID = ""
	}
}

// cloneEnv returns a copy of text, the name of an environment. It returns "" if the name has no valid character. The
// Datadog agent then uses its own environment.
func (c *Counter) cloneEnv(text spantable.Text) string {
	env := c.cloneText(text)
	if rules.IsTagValue([]byte(env)) { // nearly always; AppendTagValue would allocate
		return env
	}
	hasValidCharacter := len(rules.AppendTagValue(nil, env)) > 0
	if !hasValidCharacter {
		return ""
	}
	return env // the agent normalizes it
}

// processTags returns the tags of the process that sent the last body. It reads them from a field of the
// body, or otherwise from a tag of the first span. If the body contains neither, it returns header, the
// process tags in the headers of the request.
func (c *Counter) processTags(header string) string {
	sender := &c.table.Senders[0] // the body of a tracer has only one
	if sender.HasProcessTags {
		return c.cloneText(sender.ProcessTags)
	}
	if len(c.table.Spans) == 0 {
		return header
	}
	firstSpan := &c.table.Spans[0]
	for _, t := range c.table.TagsOf(firstSpan) {
		if t.Label == decode.LabelProcessTags && t.Type == spantable.TypeText {
			return c.cloneText(t.Text())
		}
	}
	return header
}

// eachSenderOrigin iterates over the senders of an OTLP request, the processes that its resources
// describe, and yields an origin for each. All texts are copies, so the origins remain valid when the
// request changes.
func (c *Counter) eachSenderOrigin(yield func(span.Origin) bool) {
	for i := range c.table.Senders {
		s := &c.table.Senders[i]
		o := span.Origin{
			Env:           c.cloneEnv(s.Env),
			Version:       c.cloneText(s.Version),
			Host:          c.cloneText(s.Host),
			Lang:          c.cloneText(s.Lang),
			TracerVersion: c.cloneText(s.TracerVersion),
			ContainerID:   c.cloneText(s.Container),
			GitCommitSHA:  c.cloneText(s.Commit),
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

// reset sets the language of the tracer that sent the next body. It clears the cache if the language
// has changed, because the default name of a service contains it.
func (n *serviceNames) reset(lang string) {
	if n.cache == nil || n.lang != lang {
		n.lang = lang
		n.cache = map[string]string{}
	}
}

// normalize returns a service name as the Datadog agent normalizes it. The result can refer to the
// memory of name, and must not be used after that memory has changed.
func (n *serviceNames) normalize(name []byte) string {
	if span.IsServiceName(spantable.View(name)) {
		return spantable.View(name)
	}
	if normalized, isCached := n.cache[string(name)]; isCached {
		return normalized
	}
	normalized := span.ServiceName(spantable.View(name), n.lang)
	isShort := len(name) <= span.MaxOriginField
	if isShort && len(n.cache) < maxNames {
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
