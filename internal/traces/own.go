package traces

// What a tracer reads of a span for its own statistics where the agent reads something else.

// readOwn reads of the selected span what decides whether it counts, as its tracer does.
func (c *Counter) readOwn(rec *record) {
	if c.payload.format == FormatV1 {
		return // where the kind is a field, and the origin the trace's
	}
	t := c.tag(labelKind)
	if rec.kind = kindUnknown; t != nil && t.kind == isText {
		rec.kind = c.rulebook.kindOf(t.text().Of(c.payload.body))
	}
	c.synthetic = c.rulebook.isSynthetic(c.plain(labelOrigin))
}

// kindOf is the kind of a name.
func (d *rulebook) kindOf(name []byte) kind {
	for k := kindInternal; k < kindOther; k++ {
		if string(name) == kindNames[k] || d.foldsKind && isFolded(name, kindNames[k]) {
			return k
		}
	}
	if len(name) == 0 {
		return kindUnknown
	}
	return kindOther
}

// isFolded says whether a text is a name, but for its capitals. Letters beyond ASCII are no
// letters of a kind.
func isFolded(text []byte, name string) bool {
	if len(text) != len(name) {
		return false
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// kindName is the label: for the agent one of those that it knows, for a tracer what the
// span says.
func (c *Counter) kindName(rec *record) string {
	switch {
	case c.rulebook.mending:
		return kindNames[rec.kind]
	case c.payload.format != FormatV1:
		return c.plain(labelKind)
	case rec.kind == kindUnknown:
		return ""
	}
	return kindNames[rec.kind]
}

// endpoint is what a tracer says of a request over HTTP.
func (c *Counter) endpoint() (method, endpoint string) {
	if c.own.endpoints == nil {
		return "", ""
	}
	for _, l := range c.own.endpoints {
		if endpoint = c.plain(l); endpoint != "" || c.rulebook.emptyEndpoint && c.tag(l) != nil {
			break
		}
	}
	return c.plain(labelHTTPMethod), endpoint
}
