package registry

// Folding is what the outside sees of the names that templates give.
type Folding struct {
	Templates map[string]int    // that are known, by label
	Keys      map[string]uint64 // that were counted under the name of one, by label
}

// Folding reads it. Every label that may be folded is there, also at 0.
func (i *Intervals) Folding() Folding {
	f := Folding{Templates: map[string]int{}, Keys: map[string]uint64{}}
	for _, l := range folded {
		f.Templates[l.String()], f.Keys[l.String()] = 0, 0
		if i.templates != nil {
			f.Templates[l.String()], f.Keys[l.String()] = i.templates.Known(uint8(l)), i.templates.Folded(uint8(l))
		}
	}
	return f
}

// NewTemplates are names that templates gave to their first values since the last call, and
// how many more there were.
func (i *Intervals) NewTemplates() (names []string, more uint64) {
	if i.templates == nil {
		return nil, 0
	}
	return i.templates.News()
}
