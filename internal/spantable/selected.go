package spantable

// Selected finds the tags of one span by their labels.
type Selected struct {
	Set LabelSet
	at  [MaxLabels]uint32 // by label in the set: the number of its tag in the table
}

// Select selects the tags from first to last and no others. Of two with one label the later
// one counts, as in Datadog's formats.
func (s *Selected) Select(t *Table, first, last uint32) {
	s.Set = LabelSet{}
	for i := first; i < last; i++ {
		l := t.Tags[i].Label
		s.at[l] = i
		s.Set.Add(l)
	}
}

// AddMissing selects those of the tags from first to last whose label is not selected yet. Of
// two with one label the first one counts, as in OTLP.
func (s *Selected) AddMissing(t *Table, first, last uint32) {
	for i := first; i < last; i++ {
		if l := t.Tags[i].Label; !s.Set.Has(l) {
			s.at[l] = i
			s.Set.Add(l)
		}
	}
}

// Tag is the selected tag of a label, nil where there is none.
func (s *Selected) Tag(t *Table, l Label) *Tag {
	if s.Set.Has(l) {
		return &t.Tags[s.at[l]]
	}
	return nil
}

// At is the number of the selected tag of a label in the set.
func (s *Selected) At(l Label) uint32 { return s.at[l] }
