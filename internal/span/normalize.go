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
	MaxLabel          = 200 // every other label, and each tag
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
func (k *Key) Normalize(lang string) (changed bool) {
	become := func(s *string, t string) {
		if t != *s {
			*s, changed = t, true
		}
	}
	trim := func(s *string, limit int) { become(s, Text(*s, limit)) }
	become(&k.Service, serviceName(k.Service, lang))
	become(&k.Operation, operationName(k.Operation))
	trim(&k.Resource, MaxResource)
	trim(&k.Type, MaxType)
	trim(&k.Kind, MaxLabel)
	trim(&k.HTTPMethod, MaxLabel)
	trim(&k.HTTPEndpoint, MaxLabel)
	trim(&k.GRPCStatus, MaxLabel)
	trim(&k.ServiceSource, MaxLabel)
	if k.Resource == "" {
		k.Resource, changed = k.Operation, true
	}
	if k.TraceRoot > TraceRootFalse {
		k.TraceRoot, changed = TraceRootNotSet, true
	}
	if len(k.PeerTags) > MaxPeerTags {
		k.PeerTags, changed = slices.Clone(k.PeerTags[:MaxPeerTags]), true
	}
	if len(k.AdditionalTags) > MaxAdditionalTags {
		k.AdditionalTags, changed = slices.Clone(k.AdditionalTags[:MaxAdditionalTags]), true
	}
	for i := range k.PeerTags {
		trim(&k.PeerTags[i], MaxLabel)
	}
	for i := range k.AdditionalTags {
		trim(&k.AdditionalTags[i], MaxLabel)
	}
	sortTags(k.PeerTags)
	sortTags(k.AdditionalTags)
	return changed
}

// Normalize bounds every field of the origin and makes it valid UTF-8.
func (o *Origin) Normalize() {
	for _, s := range []*string{
		&o.Host, &o.Env, &o.Version, &o.Service, &o.Lang, &o.LangVersion, &o.LangInterpreter,
		&o.TracerVersion, &o.RuntimeID, &o.ContainerID, &o.EntityID, &o.ExternalEnv,
		&o.GitCommitSHA, &o.ObfuscationVersion,
	} {
		*s = Text(*s, MaxOriginField)
	}
	o.ProcessTags = Text(o.ProcessTags, MaxProcessTags)
}

// Text returns s as valid UTF-8 of at most limit bytes. It cuts before a rune,
// never within one, and replaces what is not UTF-8 by U+FFFD.
func Text(s string, limit int) string {
	if len(s) <= limit && utf8.ValidString(s) {
		return s
	}
	// Cut first: a label of a megabyte must not cost a megabyte of repair.
	if len(s) > limit+utf8.UTFMax {
		s = s[:limit+utf8.UTFMax]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return strings.Clone(s)
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	// A copy, or the cut label would hold on to all that was cut off.
	return strings.Clone(s[:end])
}
