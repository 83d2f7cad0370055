package translate

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// collected are the tags of one span, by the labels that rules ask for. A tag may have a text and
// a number.
type collected struct {
	values     [spantable.MaxLabels]value
	used       []spantable.Label
	hasNumbers bool
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
	c.used, c.hasNumbers = c.used[:0], false
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
		v.number, v.isNumber, c.hasNumbers = n, true, true
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
		if v := &c.values[l]; v.text.Len > 0 && by[l] != numberAlone && by[l] != noTag {
			to.Tags = append(to.Tags, spantable.Tag{
				Label: l, Value: spantable.IsText, Bits: spantable.TextBits(v.text),
			})
		}
	}
	if c.hasNumbers { // behind texts of the same tag
		for _, l := range c.used {
			v := &c.values[l]
			if !v.isNumber || by[l] == noTag || by[l] == textFirst && v.text.Len > 0 {
				continue
			}
			to.Tags = append(to.Tags, spantable.Tag{
				Label: l, Value: spantable.IsNumber, Bits: math.Float64bits(v.number),
			})
		}
	}
	if s.Last = uint32(len(to.Tags)); len(to.Tags) > to.Limits.Tags {
		to.Fail(spantable.ErrTooMuch)
	}
}
