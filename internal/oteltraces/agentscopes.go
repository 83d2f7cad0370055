package oteltraces

// scopeAttributes is the field of an instrumentation scope with its attributes.
const scopeAttributes = 3<<3 | asBytes

// scopeTags are the tags that a scope gives its spans, by their places, and the bytes that they
// lie in.
type scopeTags struct{ first, last, bytes int }

// readScopes reads the attributes of a resource's scopes. Hardly any has some.
func (c *Translator) readScopes(r *resource) {
	p := &c.payload
	c.scopes = c.scopes[:0]
	for i := r.first; i < r.last; i++ {
		s := &p.scopes[i]
		of := scopeTags{first: len(p.tags)}
		for at := s.body; at < s.behind; {
			f, next := readField(p.body[:s.behind], at)
			if f.tag == scopeSpansScope {
				c.readScope(p.body[:next], f.at)
				of.bytes += next - f.at
			}
			at = next
		}
		of.last = len(p.tags)
		c.scopes = append(c.scopes, of)
	}
}

func (c *Translator) readScope(b []byte, at int) {
	for at < len(b) {
		f, next := readField(b, at)
		if f.tag == scopeAttributes {
			c.payload.attribute(b[:next], f.at, c.policy.names)
		}
		at = next
	}
}

// collectScope collects what the scope of a span says. It goes before all else, and under the
// name that it has.
func (c *Translator) collectScope(scope scopeTags) {
	p := &c.payload
	for i := scope.first; i < scope.last; i++ {
		t := &p.tags[i]
		switch number := c.plain[t.label]; {
		case number == 0:
		case t.kind == isOther:
			p.fail(ErrUnread)
		default:
			c.tags.use(number)
			c.tags.texts[number], c.tags.isSaid[number] = c.value(t), true
		}
	}
}
