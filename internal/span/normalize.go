package span

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Normalize normalizes all labels of the key and sorts its tags. Labels become valid UTF-8 of limited length, service
// and operation get the form that the Datadog agent writes, and a missing resource becomes the operation. A missing
// service gets a default name that contains lang, the language of the tracer.
//
// Normalize reports whether it changed any label, apart from the order of tags. It is idempotent.
func (k *Key) Normalize(lang string) (changed bool) {
	changed = k.NormalizeLabels(lang)
	slices.Sort(k.PeerTags)
	slices.Sort(k.AdditionalTags)
	return changed
}

// NormalizeLabels is like Normalize, but does not sort the tags.
func (k *Key) NormalizeLabels(lang string) (changed bool) {
	for l := range EndOfTexts {
		text := k.Text(l)
		if l.IsNormal(*text) {
			continue
		}
		normalized := l.normalizeText(*text, lang)
		changed = changed || normalized != *text
		*text = normalized
	}
	for l := FirstList; l < EndOfLists; l++ {
		if k.normalizeTags(l) {
			changed = true
		}
	}
	if k.TraceRoot > TraceRootFalse {
		k.TraceRoot = TraceRootNotSet
		changed = true
	}
	if k.Resource == "" {
		k.Resource = k.Operation
		changed = true
	}
	return changed
}

// ShortenResource truncates the resource to a number of bytes. It reports whether the resource was longer.
func (k *Key) ShortenResource(maxBytes int) (changed bool) {
	if len(k.Resource) <= maxBytes {
		return false
	}
	k.Resource = Shorten(k.Resource, maxBytes)
	return true
}

// normalizeTags normalizes each tag in the list l of the key. If the list is too long, it first removes
// the last tags. It reports whether it changed the list.
func (k *Key) normalizeTags(l Label) (changed bool) {
	list := k.Tags(l)
	tags := *list
	maxTags := labels[l].maxTags
	if len(tags) > maxTags {
		tags = tags[:maxTags]
		*list = tags
		changed = true
	}
	for i, tag := range tags {
		if l.IsNormal(tag) {
			continue
		}
		tags[i] = l.NormalizeTag(tag)
		if tags[i] != tag {
			changed = true
		}
	}
	return changed
}

// IsNormal reports whether text, a value of this label, would not be changed by normalizing it. It can
// return false for a normal service name with non-ASCII letters, because a check would cost as much as
// normalizing it.
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

// NormalizeTag returns a tag, such as "region:eu", as valid UTF-8. If the tag is longer than the maximum of l,
// NormalizeTag truncates it. For LabelAdditionalTag, the maximum applies to key and value separately: a tag with a
// longer key is truncated, and a longer value is replaced by Blocked.
func (l Label) NormalizeTag(tag string) string {
	maxBytes := labels[l].maxBytes
	if !labels[l].blocksLongValues {
		return truncate(tag, maxBytes)
	}
	tag = truncate(tag, maxAdditionalTag) // so that long tags cost no more
	key, value, _ := strings.Cut(tag, ":")
	switch {
	case len(key) > maxBytes:
		return truncate(tag, maxBytes)
	case len(value) > maxBytes:
		return key + ":" + Blocked
	}
	return tag
}

// Text returns s as valid UTF-8 of at most limit bytes. It truncates s at a rune boundary, and replaces each run of
// invalid bytes with U+FFFD. If the result differs from s, it shares no memory with s.
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
