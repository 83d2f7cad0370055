package traces

// selectSpan makes a span's tags findable by their labels. Of two tags with one label the
// later one counts.
func (c *Counter) selectSpan(rec *record) {
	c.set = labelSet{}
	for i := rec.first; i < rec.last; i++ {
		l := c.payload.tags[i].label
		c.at[l] = i
		c.set.add(l)
	}
}

// tag is the selected span's, nil where it has none.
func (c *Counter) tag(l label) *tag {
	if c.set.has(l) {
		return &c.payload.tags[c.at[l]]
	}
	return nil
}

// number is a tag's value as the agent reads a number, also from text, or as a tracer does.
func (c *Counter) number(l label) (float64, bool) {
	if t := c.tag(l); t != nil && (t.kind != isText || c.rulebook.mending) {
		return t.number(c.payload.body)
	}
	return 0, false
}

func (c *Counter) isOne(l label) bool {
	n, ok := c.number(l)
	return ok && n == 1
}

// plain is a tag's text, where it was written as text.
func (c *Counter) plain(l label) string {
	if t := c.tag(l); t != nil && t.kind == isText {
		return view(c.text(t.text()))
	}
	return ""
}
