package registry

import (
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// peerTags finds the tags' numbers, in the order of charge.tags, and says how many they
// have become.
func (g *Glance) peerTags(ids *[maxGlancedTags]valueID, key string, o *span.Outline, full uint32) (n int, lost Collapsed, known verdict) {
	anyBlocked := false
	for i := range o.Peers {
		text := o.PeerTags[i].Of(key)
		hash, isASCII := span.Look(text)
		if !isASCII || len(text) > span.MaxLabel {
			return 0, 0, unknown
		}
		id, known := g.tag(text, hash, full)
		switch known {
		case over:
			lost |= 1 << FieldPeerTag
			anyBlocked = true
			g.lostAt |= 1 << i
		case unknown, homeless:
			return 0, lost, known
		default:
			anyBlocked = anyBlocked || o.Peers > 1 && g.registry.values.at(id).isBlocked
		}
		ids[i] = id
	}
	n = o.Peers
	if n > 1 {
		slices.Sort(ids[:n])
		if anyBlocked {
			n = len(slices.Compact(ids[:n]))
		}
	}
	return n, lost, admitted
}

// tag finds a tag that was admitted. Of one that was not, the name must be used up
// before it was looked for, since it may have been the last.
func (g *Glance) tag(text string, hash uint64, full uint32) (valueID, verdict) {
	if text == span.Blocked {
		return blocked, admitted
	}
	values := &g.registry.values
	id := g.nameOf(text)
	name, becomes := (*value)(nil), absent
	if id != absent {
		name = values.at(id)
		becomes = name.becomes()
	}
	where := scopeOf(g.origin, FieldPeerTag)
	if hash = hashIn(where, hash); passes(values.places.sieve.view(), hash) {
		if id, ok := values.search(where, hash, text); ok {
			return id, admitted
		}
	}
	lost := int32(nameless)
	switch {
	case name != nil:
		lost = name.name
		if becomes != absent {
			g.loseTag(lost)
			return becomes, over
		}
		if strings.HasSuffix(text, ":"+span.Blocked) {
			return absent, unknown
		}
	case full&(1<<FieldPeerTag) != 0:
		g.loseTag(nameless)
		return blocked, over
	}
	if full&(1<<FieldWholeKey) == 0 {
		return absent, unknown
	}
	g.loseTag(lost)
	return absent, homeless
}

// nameOf finds the name of a tag.
func (g *Glance) nameOf(tag string) valueID {
	if n := len(g.tagName.text); n > 0 && len(tag) > n && tag[n] == ':' && tag[:n] == g.tagName.text {
		return g.tagName.id
	}
	key, _, _ := strings.Cut(tag, ":")
	where := nameScopeOf(g.origin, FieldPeerTag)
	id, ok := g.registry.values.find(where, hashOf(where, key), key)
	if ok {
		g.tagName = met{g.registry.values.at(id).text, id}
	}
	return id
}
