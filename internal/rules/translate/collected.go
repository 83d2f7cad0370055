package translate

import "github.com/spanstatsd/spanstatsd/internal/spantable"

// collected are the tags of one span, by the labels that rules ask for. A tag may have a text and
// a number. The label of what nobody asks for may be set as well, and says nothing.
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

// makeText sets a text that the ingest makes itself, unless there is one.
func (c *collected) makeText(l spantable.Label, text spantable.Text) {
	if !c.values[l].isSaid && text.Len > 0 {
		c.setText(l, text)
	}
}

// setNumber sets a number where there is none yet.
func (c *collected) setNumber(l spantable.Label, n float64) {
	if v := c.of(l); !v.isNumber {
		v.number, v.isNumber = n, true
	}
}
