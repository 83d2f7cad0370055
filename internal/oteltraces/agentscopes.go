package oteltraces

import "slices"

// scopeAttributes is the field of an instrumentation scope with its attributes.
const scopeAttributes = 3<<3 | asBytes

// scopeTags are the places of the tags that a scope gives its spans.
type scopeTags struct{ firstSpan, first, last int }

// readScopes reads the attributes of a resource's scopes. Hardly any has some.
func (c *Translator) readScopes(r *resource) {
	p := &c.payload
	c.scopes = c.scopes[:0]
	for i := r.first; i < r.last; i++ {
		s := &p.scopes[i]
		first := len(p.tags)
		for at := s.body; at < s.behind; {
			f, next := readField(p.body[:s.behind], at)
			if f.tag == scopeSpansScope {
				c.readScope(p.body[:next], f.at)
			}
			at = next
		}
		c.scopes = append(c.scopes, scopeTags{s.first, first, len(p.tags)})
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
func (c *Translator) collectScope(place int) {
	p := &c.payload
	at, found := slices.BinarySearchFunc(c.scopes, place, func(s scopeTags, place int) int { return s.firstSpan - place })
	if !found {
		at--
	}
	for at+1 < len(c.scopes) && c.scopes[at+1].firstSpan <= place {
		at++ // behind scopes without spans
	}
	for i := c.scopes[at].first; i < c.scopes[at].last; i++ {
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
