package translate

import (
	"math"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// collected are the tags of one span, by the labels that rules ask for. A tag may have a text and
// a number.
type collected struct {
	values [spantable.MaxLabels]value
	used   []spantable.Label
}

type value struct {
	text     spantable.Text
	number   float64
	isSaid   bool // there is a text, though it may be empty
	isNumber bool
	isUsed   bool
}

func (c *collected) reset() {
	for _, l := range c.used {
		c.values[l] = value{}
	}
	c.used = c.used[:0]
}

// of is the value of a tag that is about to be set.
func (c *collected) of(l spantable.Label) *value {
	v := &c.values[l]
	if !v.isUsed {
		v.isUsed = true
		c.used = append(c.used, l)
	}
	return v
}

// setText sets a text where there is none yet, or an empty one.
func (c *collected) setText(l spantable.Label, text spantable.Text) {
	v := c.of(l)
	if v.isSaid = true; v.text.Len == 0 {
		v.text = text
	}
}

// replaceText sets a text whatever there is.
func (c *collected) replaceText(l spantable.Label, text spantable.Text) {
	v := c.of(l)
	v.text, v.isSaid = text, true
}

// makeText sets a text that the ingest makes itself, unless there is one, or nobody asks for it.
func (c *collected) makeText(l spantable.Label, text spantable.Text) {
	if l != spantable.Other && !c.values[l].isSaid && text.Len > 0 {
		c.setText(l, text)
	}
}

// setNumber sets a number where there is none yet, and somebody asks for it.
func (c *collected) setNumber(l spantable.Label, n float64) {
	if l == spantable.Other {
		return
	}
	if v := c.of(l); !v.isNumber {
		v.number, v.isNumber = n, true
	}
}

// appendTexts appends the texts, also those that are empty, each label once.
func (c *collected) appendTexts(dst []spantable.Tag) []spantable.Tag {
	for _, l := range c.used {
		text := spantable.TextBits(c.values[l].text)
		dst = append(dst, spantable.Tag{Label: l, Value: spantable.IsText, Bits: text})
	}
	return dst
}

// appendTo gives a span the tags that were collected, of each the value that counts.
func (c *collected) appendTo(to *spantable.Table, s *spantable.Span, by *[spantable.MaxLabels]numberRule) {
	s.First = uint32(len(to.Tags))
	for _, l := range c.used {
		v := &c.values[l]
		tag := spantable.Tag{Label: l, Value: spantable.IsText, Bits: spantable.TextBits(v.text)}
		if v.isNumber && by[l].takesNumber(v) {
			tag.Value, tag.Bits = spantable.IsNumber, math.Float64bits(v.number)
		} else if v.text.Len == 0 || by[l] == numberAlone || by[l] == noTag {
			continue
		}
		to.Tags = append(to.Tags, tag)
	}
	if s.Last = uint32(len(to.Tags)); len(to.Tags) > to.Limits.Tags {
		to.Fail(spantable.ErrTooMuch)
	}
}

// takesNumber says whether the number of a tag counts, and not its text.
func (r numberRule) takesNumber(v *value) bool {
	switch r {
	case numberAlone:
		return true
	case textFirst:
		return v.text.Len == 0
	case wholeFirst:
		_, isWhole := rules.WholeNumber(v.number)
		return isWhole
	}
	return false
}
