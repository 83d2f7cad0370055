package span

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Normalize converts the key to the form that the statistics contain: valid UTF-8, no label over its
// maximum length, names of service and operation as the Datadog agent writes them, the operation in place
// of a missing resource, and sorted tags. Keys that differ only in the order of tags become equal. lang is
// the tracer's language; it is part of the name of a service that has none.
//
// Normalize reports whether it changed any label, apart from the order of tags. It is idempotent.
func (k *Key) Normalize(lang string) (changed bool) {
	changed = k.NormalizeLabels(lang)
	for l := FirstList; l < EndOfLists; l++ {
		slices.Sort(*k.Tags(l))
	}
	return changed
}

// NormalizeLabels is like Normalize, but does not sort the tags.
func (k *Key) NormalizeLabels(lang string) (changed bool) {
	for l := range FirstList {
		if value := k.Text(l); !l.IsNormal(*value) {
			normal := l.normalizeText(*value, lang)
			changed = changed || normal != *value
			*value = normal
		}
	}
	for l := FirstList; l < EndOfLists; l++ {
		tags := k.Tags(l)
		if most := labels[l].maxTags; len(*tags) > most {
			*tags, changed = (*tags)[:most], true
		}
		for i, tag := range *tags {
			if !l.IsNormal(tag) {
				(*tags)[i] = l.Tag(tag)
				changed = changed || (*tags)[i] != tag
			}
		}
	}
	if k.TraceRoot > TraceRootFalse {
		k.TraceRoot, changed = TraceRootNotSet, true
	}
	if k.Resource == "" {
		k.Resource, changed = k.Operation, true
	}
	return changed
}

// IsNormal reports whether text, the value of the label or one tag of a list, is certainly in normalized
// form. For some normalized texts it returns false, because checking them would cost as much as
// normalizing.
func (l Label) IsNormal(text string) bool {
	spec := &labels[l]
	switch {
	case text == "":
		return !spec.required
	case spec.rules != nil:
		return spec.rules.isNormal(text)
	}
	return isText(text, spec.maxBytes)
}

func (l Label) normalizeText(value, lang string) string {
	if rules := labels[l].rules; rules != nil {
		return rules.normalize(value, lang)
	}
	return truncate(value, labels[l].maxBytes)
}

// Tag returns a tag of a list in normalized form. If only the value of an additional tag is too long, Blocked
// replaces it; every other tag that is too long is truncated.
func (l Label) Tag(tag string) string {
	spec := &labels[l]
	if !spec.blocksLongValues {
		return truncate(tag, spec.maxBytes)
	}
	tag = truncate(tag, maxAdditionalTag)
	key, value, found := strings.Cut(tag, ":")
	switch {
	case !found || len(key) > spec.maxBytes:
		return truncate(tag, spec.maxBytes)
	case len(value) > spec.maxBytes:
		return key + ":" + Blocked
	}
	return tag
}

// Text returns s as valid UTF-8 of at most limit bytes. It truncates s at a rune boundary, and replaces each run of
// invalid bytes with U+FFFD. It does not read much more than limit bytes, so that a very long label costs no more
// than a long one.
func Text(s string, limit int) string {
	if isText(s, limit) {
		return s
	}
	return strings.Clone(truncate(s, limit)) // a substring would keep all of s in memory
}

// truncate is like Text, but may return a substring of s.
func truncate(s string, limit int) string {
	return Shorten(strings.ToValidUTF8(s[:min(len(s), limit+utf8.UTFMax)], "\uFFFD"), limit)
}

// Shorten truncates text, which must be valid UTF-8, to at most limit bytes at a rune boundary. The result
// is a substring of text.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// isText reports whether Text would return s unchanged.
func isText(s string, limit int) bool { return len(s) <= limit && utf8.ValidString(s) }
