package span

import (
	"encoding/binary"
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
//
// A label that is as it should be stays where it is, after one look at its bytes;
// one that is only cut is a part of what it was. So a key costs memory only for
// labels that must be rewritten.
func (k *Key) Normalize(lang string) (changed bool) {
	changed = trim(&k.Resource, MaxResource)
	if k.Type != "" && trim(&k.Type, MaxType) {
		changed = true
	}
	if k.Kind != "" && trim(&k.Kind, MaxLabel) {
		changed = true
	}
	if k.HTTPMethod != "" && trim(&k.HTTPMethod, MaxLabel) {
		changed = true
	}
	if k.HTTPEndpoint != "" && trim(&k.HTTPEndpoint, MaxLabel) {
		changed = true
	}
	if k.GRPCStatus != "" && trim(&k.GRPCStatus, MaxLabel) {
		changed = true
	}
	if k.ServiceSource != "" && trim(&k.ServiceSource, MaxLabel) {
		changed = true
	}
	if s := serviceName(k.Service, lang); s != k.Service {
		k.Service, changed = s, true
	}
	if s := operationName(k.Operation); s != k.Operation {
		k.Operation, changed = s, true
	}
	if k.Resource == "" {
		k.Resource, changed = k.Operation, true
	}
	if k.TraceRoot > TraceRootFalse {
		k.TraceRoot, changed = TraceRootNotSet, true
	}
	if normalizeTags(&k.PeerTags, MaxPeerTags) {
		changed = true
	}
	if normalizeTags(&k.AdditionalTags, MaxAdditionalTags) {
		changed = true
	}
	return changed
}

// normalizeTags keeps the first tags of a list, each trimmed, and sorts them.
func normalizeTags(tags *[]string, limit int) (changed bool) {
	if len(*tags) > limit {
		*tags, changed = (*tags)[:limit], true
	}
	for i := range *tags {
		if trim(&(*tags)[i], MaxLabel) {
			changed = true
		}
	}
	sortTags(*tags)
	return changed
}

// trim makes a label valid UTF-8 within its limit.
func trim(s *string, limit int) (changed bool) {
	if len(*s) <= limit && (IsASCII(*s) || utf8.ValidString(*s)) {
		return false
	}
	*s = cut(*s, limit)
	return true
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

// IsASCII reports whether all of a text is ASCII. It asks for eight bytes at a time.
func IsASCII(s string) bool {
	b, all := []byte(s), uint64(0)
	for ; len(b) >= 8; b = b[8:] {
		all |= binary.LittleEndian.Uint64(b)
	}
	for _, c := range b {
		all |= uint64(c)
	}
	return all&0x8080808080808080 == 0
}

// Text returns s as valid UTF-8 of at most limit bytes. It cuts before a rune,
// never within one, and replaces what is not UTF-8 by U+FFFD.
func Text(s string, limit int) string {
	if trim(&s, limit) {
		// A copy, or the cut text would hold on to all that was cut off.
		return strings.Clone(s)
	}
	return s
}

// cut is Text for what is over its limit or invalid. It may be a part of s.
func cut(s string, limit int) string {
	// Cut first: a label of a megabyte must not cost a megabyte of repair.
	if len(s) > limit+utf8.UTFMax {
		s = s[:limit+utf8.UTFMax]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
