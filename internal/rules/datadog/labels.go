package datadog

import (
	"slices"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// labels are the tags that some rule asks for. They never change; another agent's policy make
// others.
type labels struct {
	names []string // by label
	peers []label  // in the order of their names
	of    [rulebookCount]labelsOf
	table *spantable.Names

	ignorable []label // of the tags that rules of Labels.Ignore ask for
}

// labelsOf is what keys are made of by the rules of one rulebook.
type labelsOf struct {
	inKey      [spantable.Kinds]spantable.LabelSet // by the kind of a span
	endpoints  []label                             // nil where neither HTTP method nor endpoint is a label
	additional []label
	aliases    []labelAlias
}

// labelAlias is an alias of a tag that is asked for.
type labelAlias struct {
	second, first label
	kinds         spantable.KindSet
}

// newLabels numbers the fixed tags, those that the agent wants of a peer, and those that tracers
// add. It reports false where those are too many, or are such as the agent itself no longer keeps
// among a span's tags.
func newLabels(peerTags []string, more Labels) (*labels, bool) {
	l := &labels{names: slices.Clone(fixedTags[:])}
	copy(l.names, decode.TraceTags[:])
	if !more.OfTracer {
		clear(l.names[labelHTTPMethod : labelHTTPRoute+1]) // no tags to look for
	}
	if !more.TraceIDs {
		l.names[decode.LabelTraceHigh] = ""
	}
	peerTags = slices.Clone(peerTags)
	slices.Sort(peerTags)
	for _, name := range slices.Compact(peerTags) {
		switch name {
		case "":
			continue
		case agent.TagKind, "env", "version", "component":
			return nil, false
		}
		at, ok := l.number(name)
		if !ok {
			return nil, false
		}
		l.peers = append(l.peers, at)
	}
	for _, name := range more.Ignore.Attributes() {
		at, ok := l.number(name)
		if !ok {
			return nil, false
		}
		l.ignorable = append(l.ignorable, at)
	}
	for id := range l.of {
		if ok := id == int(ofAgent) || !more.OfTracer || l.addTracers(rulebookID(id), more); !ok {
			return nil, false
		}
		for k := range l.of[id].inKey {
			l.of[id].inKey[k] = l.keyOf(rulebookID(id), spantable.Kind(k))
		}
	}
	l.table = spantable.NewNames(l.names)
	return l, true
}

// number gives a tag a label, unless it has one or there are too many.
func (l *labels) number(name string) (at label, ok bool) {
	if at := slices.Index(l.names, name); at > int(spantable.Other) {
		return label(at), true
	}
	if len(l.names) == spantable.MaxLabels {
		return spantable.Other, false
	}
	l.names = append(l.names, name)
	return label(len(l.names) - 1), true
}

// addTracers adds the labels that a language's tracer has and the agent has not.
func (l *labels) addTracers(id rulebookID, more Labels) bool {
	d, own := &rulebooks[id], &l.of[id]
	if !d.renamedOnly || more.RenamesResources {
		own.endpoints = d.endpoints
	}
	names := slices.Clone(more.AdditionalTags)
	if d.sortsTags {
		slices.Sort(names)
	}
	for _, name := range names[:min(d.additional, len(names))] {
		at, ok := l.number(name)
		if !ok {
			return false
		}
		own.additional = append(own.additional, at)
	}
	for _, a := range d.peers.aliases {
		second := slices.Index(l.names, a.second)
		if second < 0 {
			continue // nobody asks for it
		}
		first, ok := l.number(a.first)
		if !ok {
			return false
		}
		own.aliases = append(own.aliases, labelAlias{label(second), first, a.kinds})
	}
	return true
}

// keyOf are the labels that the key of a span of that kind is made of.
func (l *labels) keyOf(id rulebookID, k spantable.Kind) spantable.LabelSet {
	d, own := &rulebooks[id], &l.of[id]
	all := []label{
		labelHTTPStatus, labelOTelHTTPStatus, labelRPCSystemName, labelRPCSystem, labelServiceSource,
	}
	all = append(append(append(append(all, d.status.grpc...), own.additional...), own.endpoints...),
		l.ignorable...)
	if own.endpoints != nil {
		all = append(all, labelHTTPMethod)
	}
	for _, a := range own.aliases {
		all = append(all, a.first)
	}
	if !d.mending {
		all = append(all, decode.LabelKind)
	}
	if d.peers.kinds.Has(k) {
		all = append(all, l.peers...)
	}
	if d.peers.base.Has(k) {
		all = append(all, labelBaseService)
	}
	return spantable.LabelsOf(all...)
}
