package span

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The longest label of each kind, in bytes: the agent's own limits. What is
// longer is cut, never refused, because a tracer's span is worth counting even
// where its label is not worth keeping whole.
const (
	MaxService        = 100
	MaxOperation      = 100
	MaxResource       = 5000
	MaxType           = 100
	MaxLabel          = 200 // every other label, each tag, and the value of an additional one
	MaxPeerTags       = 64
	MaxAdditionalTags = 4
	// MaxOriginField bounds each field of an origin; process tags, a list, get more.
	MaxOriginField = 200
	MaxProcessTags = 4096
)

// Normalize makes the key what the statistics will show: valid UTF-8, no label
// over its limit, service and operation as the agent writes them, no resource
// missing, tags in order. lang names the service of a span that has none. It
// reports whether it changed any label. It is idempotent.
//
// A label that is normal stays where it is, and one that is only cut is a part of
// what it was. So a key costs memory only for labels that must be rewritten.
func (k *Key) Normalize(lang string) (changed bool) {
	for l := range FirstList {
		if text := k.Text(l); !l.IsNormal(*text) && l.normalize(text, lang) {
			changed = true
		}
	}
	for l := FirstList; l < WholeKey; l++ {
		if l.normalizeTags(k.Tags(l)) {
			changed = true
		}
	}
	if k.Resource == "" {
		k.Resource, changed = k.Operation, true
	}
	if k.TraceRoot > TraceRootFalse {
		k.TraceRoot, changed = TraceRootNotSet, true
	}
	return changed
}

// IsRequired reports whether no key is without the text once it is normal.
func (l Label) IsRequired() bool { return labels[l].required }

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
	return len(text) <= spec.maxBytes && utf8.ValidString(text)
}

// normalize makes a text normal.
func (l Label) normalize(text *string, lang string) (changed bool) {
	spec := &labels[l]
	if spec.names == nil {
		return trim(text, spec.maxBytes)
	}
	before := *text
	*text = spec.names.rewrite(before, lang)
	return *text != before
}

// normalizeTags keeps the first tags of a list, each trimmed, and puts them in the
// agent's order, so that two tracers which list the same tags differently meet in one
// aggregate. The order alone is no change.
func (l Label) normalizeTags(tags *[]string) (changed bool) {
	spec := &labels[l]
	if len(*tags) > spec.maxTags {
		*tags, changed = (*tags)[:spec.maxTags], true
	}
	for i := range *tags {
		tag := &(*tags)[i]
		if !l.IsNormal(*tag) && l.normalizeTag(tag) {
			changed = true
		}
	}
	if !slices.IsSorted(*tags) {
		slices.Sort(*tags)
	}
	return changed
}

// normalizeTag makes a tag of a list normal.
func (l Label) normalizeTag(tag *string) (changed bool) {
	spec := &labels[l]
	if !spec.masks {
		return trim(tag, spec.maxBytes)
	}
	before := *tag
	trim(tag, maxMaskedTag)
	switch key, value, found := strings.Cut(*tag, ":"); {
	case !found || len(key) > spec.maxBytes:
		trim(tag, spec.maxBytes)
	case len(value) > spec.maxBytes:
		*tag = key + ":" + Blocked
	}
	return *tag != before
}

// maxMaskedTag is the longest tag whose value may yet be of MaxLabel, and one byte more,
// which shows that it is longer.
const maxMaskedTag = MaxLabel + len(":") + MaxLabel + 1

// Tag is a tag of a list as it is kept.
func (l Label) Tag(tag string) string {
	if !l.IsNormal(tag) {
		l.normalizeTag(&tag)
	}
	return tag
}

// Normalize bounds every field of the origin and makes it valid UTF-8.
func (o *Origin) Normalize() {
	for _, s := range o.shortFields() {
		*s = Text(*s, MaxOriginField)
	}
	o.ProcessTags = Text(o.ProcessTags, MaxProcessTags)
}

// Clone is the same origin in memory of its own.
func (o Origin) Clone() Origin {
	for _, s := range o.shortFields() {
		*s = strings.Clone(*s)
	}
	o.ProcessTags = strings.Clone(o.ProcessTags)
	return o
}

// shortFields are all but the process tags.
func (o *Origin) shortFields() [14]*string {
	return [...]*string{
		&o.Host, &o.Env, &o.Version, &o.Service, &o.Lang, &o.LangVersion, &o.LangInterpreter,
		&o.TracerVersion, &o.RuntimeID, &o.ContainerID, &o.EntityID, &o.ExternalEnv,
		&o.GitCommitSHA, &o.ObfuscationVersion,
	}
}
