package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// verdict is what is known of a label. The lowest bit says that it is lost.
type verdict uint8

const (
	admitted verdict = iota // it was admitted, or says itself that it is collapsed
	over                    // it collapses: its budget is used up
	unknown                 // nothing: it is not normal, or may be admitted
	homeless                // it can't be admitted, for there is no row for a key that has it
)

// met is a label that was found. Types, kinds and the names of tags repeat even in a
// flood, and to compare one is less than to look for it.
type met struct {
	text string // the Registry's own
	id   valueID
}

// lost is the field, if its label is lost.
func (v verdict) lost(f Field) Collapsed { return Collapsed(v&1) << f }

// name finds a label that every key has, as label would. In a flood it knows from the
// hash alone: none of it was admitted, and the budget is used up.
func (g *Glance) name(f Field, text string, hash uint64, sieve []uint64, full uint32) (valueID, verdict) {
	if full&(1<<f) != 0 && hash != blockedHash && !passes(sieve, hash^g.scopes[f]) {
		return blocked, over
	}
	return g.label(f, text, hash, full)
}

// blockedHash is that of span.Blocked, in no scope.
var blockedHash, _ = span.Look(span.Blocked)

// label finds a label that is as it should be.
func (g *Glance) label(f Field, text string, hash uint64, full uint32) (valueID, verdict) {
	where := scopeOf(g.origin, f)
	if id, ok := g.registry.values.find(where, hashIn(where, hash), text); ok {
		g.labels[f] = met{g.registry.values.at(id).text, id}
		return id, admitted
	}
	switch {
	case text == span.Blocked:
		return blocked, admitted
	case full&(1<<f) != 0:
		return blocked, over
	case full&(1<<FieldWholeKey) != 0:
		return absent, homeless
	}
	return absent, unknown
}

// otherLabel finds one that is neither a name nor the resource.
func (g *Glance) otherLabel(f Field, text string, full uint32) (valueID, verdict) {
	hash, isASCII := span.Look(text)
	if !isASCII || len(text) > span.MaxLabel || f == FieldType && len(text) > span.MaxType {
		return absent, unknown
	}
	return g.label(f, text, hash, full)
}
