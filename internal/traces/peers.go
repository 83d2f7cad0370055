package traces

import "github.com/spanstatsd/spanstatsd/client/rules"

// peerTags appends the tags that rules.PeerTags would, for a span as the rulebook sees it.
func (c *Counter) peerTags(dst []string, kind kind) []string {
	switch {
	case c.rulebook.peers.has(kind):
		for _, l := range c.policy.labels.peers {
			dst = c.peerTag(dst, l, kind)
		}
	case !c.rulebook.base.has(kind) || len(c.policy.labels.peers) == 0 && !c.rulebook.baseAlways:
	case !c.rulebook.mending || c.baseService() != "":
		dst = c.peerTag(dst, labelBaseService, kind)
	}
	return dst
}

// peerTag appends one, if the selected span has it.
func (c *Counter) peerTag(dst []string, l label, kind kind) []string {
	from := c.named(l, kind)
	t := c.tag(from)
	if t == nil || t.kind != isText && c.rulebook.textTags {
		return dst
	}
	value := c.written(from)
	if c.rulebook.mending && t.kind == isText && (l == labelPeerService || l == labelBaseService) {
		value = c.services.peer(c.text(t.text()))
	}
	if value == "" {
		return dst
	}
	if !c.rulebook.rawPeers {
		value = rules.QuantizePeer(value)
	}
	return append(dst, c.joined(l, value))
}

// additionalTags appends the tags that the rulebook adds.
func (c *Counter) additionalTags(dst []string, kind kind) []string {
	for _, l := range c.own.additional {
		from := c.named(l, kind)
		if t := c.tag(from); t == nil || t.kind != isText && c.rulebook.textTags {
			continue
		}
		if value := c.written(from); value != "" {
			dst = append(dst, c.joined(l, value))
		}
	}
	return dst
}

// named is the tag that the selected span has by that name, be it the second of the tag.
func (c *Counter) named(l label, kind kind) label {
	for _, a := range c.own.aliases {
		if a.second == l && a.kinds.has(kind) && !c.set.has(l) {
			return a.first
		}
	}
	return l
}

// joined is a tag in one text.
func (c *Counter) joined(l label, value string) string {
	start := len(c.scratch)
	c.scratch = append(c.scratch, c.policy.labels.names[l]...)
	c.scratch = append(c.scratch, ':')
	c.scratch = append(c.scratch, value...)
	return view(c.scratch[start:])
}

// baseService is the service that the selected span's process is configured as.
func (c *Counter) baseService() string {
	if t := c.tag(labelBaseService); t != nil && t.kind == isText {
		return c.services.peer(c.text(t.text()))
	}
	return ""
}

// mainService is the one that payloads with the spans of a trace name, by its root, which is
// selected. The agent takes the root's base service alone; a tracer names what its process is
// configured as, and a span of that service has no base service.
func (c *Counter) mainService(root *record) string {
	switch {
	case c.rulebook.mending:
		return c.baseService()
	case c.rulebook.noMainService:
		return ""
	case c.tag(labelBaseService) != nil:
		return c.plain(labelBaseService)
	}
	return view(c.text(root.service))
}
