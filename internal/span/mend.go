package span

import (
	"slices"
	"strings"
)

// Mender makes keys normal in memory of its own, which it uses again for each key: so a flood
// of keys that must be rewritten allocates nothing. The labels that Mend has rewritten are
// parts of that memory, and good until its next Mend. A label that was only cut is a part of
// the original text.
//
// A byte that is kept is looked at a fixed number of times, and one behind a limit never.
type Mender struct {
	rewritten []byte
	released  int // bytes that Release gave back last: as many will be needed again
}

// KeptBytes is what a Mender may hold between two batches: it is more than rewritten labels
// mostly are, and much less than they may be. Release gives the rest back.
const KeptBytes = 1 << 10

// Release gives back memory of more than KeptBytes. No mended label is good after it.
func (m *Mender) Release() {
	if cap(m.rewritten) > KeptBytes {
		m.rewritten, m.released = nil, cap(m.rewritten)
	}
}

// memory is where the next rewritten label is appended to.
func (m *Mender) memory() []byte {
	if m.rewritten == nil && m.released > 0 {
		m.rewritten = make([]byte, 0, m.released)
	}
	return m.rewritten
}

// Mend makes the key what the statistics will show, but for the order of its tags: valid
// UTF-8, no label over its limit, service and operation as the agent writes them, no
// resource missing. lang names the service of a span that has none. It reports whether it
// changed any label. What was rewritten before is not good any more.
func (m *Mender) Mend(k *Key, lang string) (changed bool) {
	m.rewritten = m.rewritten[:0]
	for l := range FirstList {
		text := k.Text(l)
		changed = (*text != "" || labels[l].required) && !l.IsNormal(*text) && m.text(l, text, lang) ||
			changed
	}
	for l := FirstList; l < EndOfLists; l++ {
		changed = m.tags(l, k.Tags(l)) || changed
	}
	if k.TraceRoot > TraceRootFalse {
		k.TraceRoot, changed = TraceRootNotSet, true
	}
	if k.Resource == "" {
		k.Resource, changed = k.Operation, true
	}
	return changed
}

// IsNormal reports whether a text, or a tag of a list, is what the statistics show. It
// may say no of one that Normalize would leave as it is.
func (l Label) IsNormal(text string) bool {
	spec := &labels[l]
	switch {
	case text == "":
		return !spec.required
	case spec.names != nil:
		return spec.names.isName(text)
	}
	return isText(text, spec.maxBytes)
}

// text makes a text normal of which IsNormal says no.
func (m *Mender) text(l Label, text *string, lang string) (changed bool) {
	spec := &labels[l]
	if spec.names == nil {
		m.cut(text, spec.maxBytes)
		return true
	}
	begin, before := len(m.rewritten), *text
	m.rewritten = spec.names.append(m.memory(), before, lang)
	if name := stringOf(m.rewritten[begin:]); name != before {
		*text = name
		return true
	}
	m.rewritten = m.rewritten[:begin]
	return false
}

// trim makes a text valid UTF-8 within its limit.
func (m *Mender) trim(s *string, limit int) (changed bool) {
	if isText(*s, limit) {
		return false
	}
	m.cut(s, limit)
	return true
}

// cut is trim for a text that can't stay as it is.
func (m *Mender) cut(s *string, limit int) {
	if len(*s) > limit && shorten(s, limit) {
		return
	}
	begin := len(m.rewritten)
	m.rewritten = appendText(m.memory(), *s, limit)
	*s = stringOf(m.rewritten[begin:])
}

// tags trims each tag of a list, and leaves out those that are too many.
func (m *Mender) tags(l Label, tags *[]string) (changed bool) {
	if most := labels[l].maxTags; len(*tags) > most {
		*tags, changed = (*tags)[:most], true
	}
	for i := range *tags {
		if tag := &(*tags)[i]; !isText(*tag, labels[l].maxBytes) && m.tag(l, tag) {
			changed = true
		}
	}
	return changed
}

// tag makes a tag of a list normal of which IsNormal says no.
func (m *Mender) tag(l Label, tag *string) (changed bool) {
	spec := &labels[l]
	if !spec.masks {
		m.cut(tag, spec.maxBytes)
		return true
	}
	before := *tag
	m.trim(tag, maxMaskedTag)
	switch key, value, found := strings.Cut(*tag, ":"); {
	case !found || len(key) > spec.maxBytes:
		m.trim(tag, spec.maxBytes)
	case len(value) > spec.maxBytes:
		begin := len(m.rewritten)
		m.rewritten = append(append(append(m.memory(), key...), ':'), Blocked...)
		*tag = stringOf(m.rewritten[begin:])
	}
	return *tag != before
}

// Tag is a tag of a list as it is kept.
func (l Label) Tag(tag string) string {
	if !l.IsNormal(tag) {
		var m Mender
		m.tag(l, &tag)
	}
	return tag
}

// Normalize mends a key, and puts its tags in the agent's order, so that two tracers which
// list the same tags differently mean one key. Such an order does not count as a change. It is
// idempotent.
func (k *Key) Normalize(lang string) (changed bool) {
	var m Mender
	changed = m.Mend(k, lang)
	for l := FirstList; l < EndOfLists; l++ {
		if tags := *k.Tags(l); !slices.IsSorted(tags) {
			slices.Sort(tags)
		}
	}
	return changed
}
