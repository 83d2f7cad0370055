package datadog

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
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
	all = append(append(append(all, d.status.grpc...), own.additional...), own.endpoints...)
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

// label is the number of a tag's name.
type label = spantable.Label

// The labels of tags that a rule asks for whatever the agent wants, behind those that the decoder
// needs itself.
const (
	// What decides whether a span is counted, and how often.
	labelTopLevel label = iota + decode.TraceLabels
	labelTracerTopLevel
	labelMeasured
	labelPartialVersion
	labelSampleRate
	// What keys are made of.
	labelHTTPStatus
	labelOTelHTTPStatus
	labelGRPCStatus // and the four after it, in the order of agent.GRPCStatusTags
	_
	_
	_
	labelRPCResponseStatus
	labelRPCSystemName
	labelRPCSystem
	labelServiceSource
	labelHTTPMethod
	labelHTTPEndpoint
	labelHTTPRoute
	labelBaseService
	labelPeerService
	fixedLabels
)

// fixedTags are the names of the tags above.
var fixedTags = [fixedLabels]string{
	labelTopLevel: agent.TagTopLevel, labelTracerTopLevel: agent.TagTracerTopLevel,
	labelMeasured: agent.TagMeasured, labelPartialVersion: agent.TagPartialVersion,
	labelSampleRate: agent.TagSampleRate, labelHTTPStatus: agent.TagHTTPStatus,
	labelOTelHTTPStatus: agent.TagOTelHTTPStatus, labelGRPCStatus: agent.GRPCStatusTags[0],
	labelGRPCStatus + 1: agent.GRPCStatusTags[1], labelGRPCStatus + 2: agent.GRPCStatusTags[2],
	labelGRPCStatus + 3: agent.GRPCStatusTags[3], labelRPCResponseStatus: agent.GRPCStatusTags[4],
	labelRPCSystemName: agent.TagRPCSystemName, labelRPCSystem: agent.TagRPCSystem,
	labelServiceSource: "_dd.svc_src", labelHTTPMethod: "http.method", labelHTTPEndpoint: "http.endpoint",
	labelHTTPRoute: "http.route", labelBaseService: agent.TagBaseService, labelPeerService: "peer.service",
}

// Labels are which labels spans have.
type Labels struct {
	// OfTracer: those that the tracer's own statistics would have. Otherwise those that the agent
	// gives the same spans.
	OfTracer bool
	// AdditionalTags are the names of tags that tracers make labels of, as the operator has told
	// them. Of a tracer that takes fewer, the first are.
	AdditionalTags []string
	// RenamesResources: some tracers have HTTP labels only with this.
	RenamesResources bool
	// Ignore says which spans are not counted, as far as their tags say; nil: none is left out.
	Ignore *ignore.List
	// TraceIDs: spans can be asked for the ids of their traces, see Counter.Kept.
	TraceIDs bool
}

// Check says what is unusable.
func (l *Labels) Check() (err error) {
	for _, name := range l.AdditionalTags {
		if name == "" || len(name) > span.MaxLabel || strings.Contains(name, ":") {
			err = errors.Join(err, fmt.Errorf("check apm-additional-tags: "+
				"%q is no name of a tag: it has 1 to %d bytes and no colon", name, span.MaxLabel))
		}
	}
	return err
}

// Policy is what the agent wants counted, and what it would leave out.
type Policy struct {
	id       rules.PolicyID
	labels   *labels
	ignored  *ignore.List      // spans that are not counted for their tags
	kinds    spantable.KindSet // counted for their kind alone
	ignore   []*regexp.Regexp  // of a root's resource: its trace is not counted
	ofTracer bool
	traceIDs bool // are asked for
}

// NewPolicy reads an agent's features. It reports false where the agent asks for what only it can
// do: its traces are then left to it.
func NewPolicy(peerTags, spanKinds, ignoreResources []string, more Labels) (*Policy, bool) {
	l, ok := newLabels(peerTags, more)
	p := &Policy{id: rules.NewPolicyID(), labels: l, ignored: more.Ignore, ofTracer: more.OfTracer, traceIDs: more.TraceIDs}
	for k := range spantable.Kinds {
		if k != spantable.KindOther && slices.Contains(spanKinds, k.String()) {
			p.kinds |= spantable.KindsOf(k)
		}
	}
	for _, text := range ignoreResources {
		r, err := regexp.Compile(text)
		if err != nil {
			return nil, false
		}
		p.ignore = append(p.ignore, r)
	}
	return p, ok
}

// Tags are the names of all tags that some rule asks for: nothing else of a span's tags changes
// what it is counted as.
func (p *Policy) Tags() []string {
	return slices.DeleteFunc(slices.Clone(p.labels.names), func(name string) bool { return name == "" })
}

// Names are those tags with their labels, for a decoder.
func (p *Policy) Names() *spantable.Names { return p.labels.table }

// ignores says whether the agent would leave a trace out for its root's resource.
func (p *Policy) ignores(resource []byte) bool {
	return slices.ContainsFunc(p.ignore, func(r *regexp.Regexp) bool { return r.Match(resource) })
}
