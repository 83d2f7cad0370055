package span

import (
	"iter"
	"strings"
)

// attributeEnd stands behind the name and the value of each of an origin's attributes.
const attributeEnd = "\x00"

// AppendAttribute appends one of an origin's attributes, as they stand in one text: so origins can be
// compared, and those that say the same in the same order are one. Where the text would be longer
// than MaxAttributes it is left out.
func AppendAttribute(text []byte, name, value string) []byte {
	value, _, _ = strings.Cut(value, attributeEnd)
	if value == "" || len(text)+len(name)+len(value)+2*len(attributeEnd) > MaxAttributes {
		return text
	}
	return append(append(append(append(text, name...), attributeEnd...), value...), attributeEnd...)
}

// EachAttribute visits the attributes of an origin.
func (o *Origin) EachAttribute() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for rest := o.Attributes; rest != ""; {
			var name, value string
			name, rest, _ = strings.Cut(rest, attributeEnd)
			value, rest, _ = strings.Cut(rest, attributeEnd)
			if !yield(name, value) {
				return
			}
		}
	}
}

// Attribute is the value of one of an origin's attributes, empty where it has none.
func (o *Origin) Attribute(name string) string {
	for known, value := range o.EachAttribute() {
		if known == name {
			return value
		}
	}
	return ""
}
