package translate

import (
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/rules/work"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// asked is a span and its resource, which are asked for attributes, and where texts are made.
type asked struct {
	request *otlp.Request
	to      *spantable.Table // with the body of the request, so a text of that is one of this
	span    spantable.Selected
	process spantable.Selected // its resource
	either  spantable.LabelSet // what one of both has
	scratch []byte             // texts that nothing is made of but a name
}

// selectProcess selects a resource, and no span.
func (a *asked) selectProcess(of *otlp.Resource) {
	a.process.Set = spantable.LabelSet{}
	a.process.AddMissing(&a.request.Table, of.FirstTag, of.LastTag)
	a.span.Set, a.either = spantable.LabelSet{}, a.process.Set
}

// selectSpan selects a span of the selected resource.
func (a *asked) selectSpan(s *spantable.Span) {
	a.span.Set, a.scratch = spantable.LabelSet{}, a.scratch[:0]
	a.span.AddMissing(&a.request.Table, s.First, s.Last)
	for i := range a.either {
		a.either[i] = a.span.Set[i] | a.process.Set[i]
	}
}

// text is an attribute that the span, or else its resource, has as a text that is not empty.
func (a *asked) text(l spantable.Label) spantable.Text {
	if !a.either.Has(l) {
		return spantable.Text{}
	}
	return a.found(l)
}

func (a *asked) found(l spantable.Label) spantable.Text {
	for _, s := range [...]*spantable.Selected{&a.span, &a.process} {
		if t := s.Tag(&a.request.Table, l); t != nil && t.Value == spantable.IsText && t.Text().Len > 0 {
			return t.Text()
		}
	}
	return spantable.Text{}
}

// first is the first of two attributes that is such a text.
func (a *asked) first(l, or spantable.Label) spantable.Text {
	if text := a.text(l); text.Len > 0 {
		return text
	}
	return a.text(or)
}

// integer is an attribute that the span, or else its resource, has as an integer.
func (a *asked) integer(l spantable.Label) (int64, bool) {
	for _, s := range [...]*spantable.Selected{&a.span, &a.process} {
		if t := s.Tag(&a.request.Table, l); t != nil && t.Value == spantable.IsInteger {
			return int64(t.Bits), true
		}
	}
	return 0, false
}

// said is what the resource says, of any type, as the value of a tag.
func (a *asked) said(l spantable.Label) spantable.Text {
	t := a.process.Tag(&a.request.Table, l)
	if t == nil {
		return spantable.Text{}
	}
	return a.normal(a.value(t))
}

// Said is what package work asks for: as the value of a tag, but for a method, of which it only
// asks whether there is one. It is good until the next span.
func (a *asked) Said(attribute work.Attribute) string {
	text := a.to.Bytes(a.first(workAttributes[attribute][0], workAttributes[attribute][1]))
	if attribute == work.HTTPMethod || rules.IsTagValue(text) {
		return spantable.View(text)
	}
	start := len(a.scratch)
	a.scratch = rules.AppendTagValue(a.scratch, spantable.View(text))
	return spantable.View(a.scratch[start:])
}

// value is an attribute as text.
func (a *asked) value(t *spantable.Tag) spantable.Text {
	if t.Value == spantable.IsText {
		return t.Text()
	}
	start := len(a.to.Made)
	a.to.Made = a.request.AppendValue(a.to.Made, t)
	return a.to.MadeSince(start)
}

// normal is a text as the value of a tag, which most are as they are.
func (a *asked) normal(text spantable.Text) spantable.Text {
	if rules.IsTagValue(a.to.Bytes(text)) {
		return text
	}
	start := len(a.to.Made)
	a.to.Made = rules.AppendTagValue(a.to.Made, a.to.String(text))
	return a.to.MadeSince(start)
}

// join is a text of several parts.
func (a *asked) join(all ...string) spantable.Text {
	start := len(a.to.Made)
	for _, part := range all {
		a.to.Made = append(a.to.Made, part...)
	}
	return a.to.MadeSince(start)
}

// decimal is an integer as a text.
func (a *asked) decimal(n int64) spantable.Text {
	start := len(a.to.Made)
	a.to.Made = strconv.AppendInt(a.to.Made, n, 10)
	return a.to.MadeSince(start)
}
