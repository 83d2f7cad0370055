package span

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Normalize makes a key what the statistics show: valid UTF-8, no label over its limit, the names of service and
// operation as the agent writes them, no resource missing, tags in the agent's order, so that two tracers that list
// the same tags differently mean one key. lang is the language of a tracer that gives its service no name. Normalize
// reports whether it changed any label; the order of tags does not count. It is idempotent.
func (k *Key) Normalize(lang string) (changed bool) {
	changed = k.NormalizeLabels(lang)
	for l := FirstList; l < EndOfLists; l++ {
		slices.Sort(*k.Tags(l))
	}
	return changed
}

// NormalizeLabels is like Normalize, but leaves the tags in their order.
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

// IsNormal reports whether a text, or a tag of a list, is as the statistics show it. It may return false for a text
// that Normalize leaves unchanged.
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

func (l Label) normalizeText(value, lang string) string {
	if names := labels[l].names; names != nil {
		return names.normalize(value, lang)
	}
	return text(value, labels[l].maxBytes)
}

// Tag returns a tag of a list as it is kept.
func (l Label) Tag(tag string) string {
	spec := &labels[l]
	if !spec.masks {
		return text(tag, spec.maxBytes)
	}
	tag = text(tag, maxMaskedTag)
	key, value, found := strings.Cut(tag, ":")
	switch {
	case !found || len(key) > spec.maxBytes:
		return text(tag, spec.maxBytes)
	case len(value) > spec.maxBytes:
		return key + ":" + Blocked
	}
	return tag
}

// Text returns s as valid UTF-8 of at most limit bytes. It cuts before a rune, never within one, and replaces each
// run of bytes that are not UTF-8 by U+FFFD. It reads no more bytes than may be kept: a label of a megabyte must not
// cost a megabyte of repair.
func Text(s string, limit int) string {
	if isText(s, limit) {
		return s
	}
	return strings.Clone(text(s, limit)) // a part of the original would keep all of it in memory
}

// text is like Text, but may return a part of the original.
func text(s string, limit int) string {
	return Shorten(strings.ToValidUTF8(s[:min(len(s), limit+utf8.UTFMax)], "\uFFFD"), limit)
}

// Shorten cuts valid UTF-8 to at most limit bytes. The result is a part of the text.
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
