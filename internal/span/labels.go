package span

// Labels is a set of labels.
type Labels uint16

// Has reports whether a label is in the set.
func (s Labels) Has(l Label) bool { return s&(1<<l) != 0 }

// With is the set with one more label.
func (s Labels) With(l Label) Labels { return s | 1<<l }

// Without is the set without a label.
func (s Labels) Without(l Label) Labels { return s &^ (1 << l) }
