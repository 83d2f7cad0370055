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

// labels numbers the tags that the rules of a policy ask for. It is immutable.
type labels struct {
	names     []string // name of each label
	peers     []label  // peer tags, sorted by name
	byBook    [rulebookCount]bookLabels
	table     *spantable.Names // names for the decoder
	ignorable []label          // tags that the rules of Labels.Ignore match
}

// bookLabels contains the labels of one rulebook.
type bookLabels struct {
	inKey      [spantable.Kinds]spantable.LabelSet // for each kind of spans, the tags that affect the key
	endpoints  []label                             // tags of the HTTP endpoint; nil if keys have no HTTP method and endpoint
	additional []label
	aliases    []labelAlias
}

// labelAlias is an alias, see rulebook, by label.
type labelAlias struct {
	second, first label
	kinds         spantable.KindSet
}

// newLabels returns the labels for the fixed tags, the agent's peer tags, and the tags of the
// tracers' rules. It reports false if they are too many, or if the agent asks for a peer tag that
// it no longer keeps in a span's tags.
func newLabels(peerTags []string, more Labels) (*labels, bool) {
	l := &labels{names: slices.Clone(fixedTags[:])}
	copy(l.names, decode.TraceTags[:])
	if !more.OfTracer {
		clear(l.names[labelHTTPMethod : labelHTTPRoute+1]) // the agent's rules read no HTTP tags
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
		peer, ok := l.number(name)
		if !ok {
			return nil, false
		}
		l.peers = append(l.peers, peer)
	}
	for _, name := range more.Ignore.AttributeNames() {
		tag, ok := l.number(name)
		if !ok {
			return nil, false
		}
		l.ignorable = append(l.ignorable, tag)
	}
	for id := range l.byBook {
		if ok := id == int(ofAgent) || !more.OfTracer || l.addTracers(rulebookID(id), more); !ok {
			return nil, false
		}
		for k := range l.byBook[id].inKey {
			l.byBook[id].inKey[k] = l.keyOf(rulebookID(id), spantable.Kind(k))
		}
	}
	l.table = spantable.NewNames(l.names)
	return l, true
}

// number returns the label of a tag. A tag without a label gets the next one. It reports false if
// there are too many.
func (l *labels) number(name string) (tag label, ok bool) {
	if i := slices.Index(l.names, name); i > int(spantable.Other) {
		return label(i), true
	}
	if len(l.names) == spantable.MaxLabels {
		return spantable.Other, false
	}
	l.names = append(l.names, name)
	return label(len(l.names) - 1), true
}

// addTracers adds the labels that a rulebook has in addition to the agent's. It reports false if
// there are too many.
func (l *labels) addTracers(id rulebookID, more Labels) bool {
	book, own := &rulebooks[id], &l.byBook[id]
	if !book.needsRenaming || more.RenamesResources {
		own.endpoints = book.endpoints
	}
	names := slices.Clone(more.AdditionalTags)
	if book.sortsTags {
		slices.Sort(names)
	}
	for _, name := range names[:min(book.additional, len(names))] {
		tag, ok := l.number(name)
		if !ok {
			return false
		}
		own.additional = append(own.additional, tag)
	}
	for _, a := range book.peers.aliases {
		second := slices.Index(l.names, a.second)
		if second < 0 {
			continue // no rule asks for the tag
		}
		first, ok := l.number(a.first)
		if !ok {
			return false
		}
		own.aliases = append(own.aliases, labelAlias{label(second), first, a.kinds})
	}
	return true
}

// keyOf returns the labels of the tags that affect the key of a span of kind k by a rulebook.
func (l *labels) keyOf(id rulebookID, k spantable.Kind) spantable.LabelSet {
	book, own := &rulebooks[id], &l.byBook[id]
	all := []label{
		labelHTTPStatus, labelOTelHTTPStatus, labelRPCSystemName, labelRPCSystem, labelServiceSource,
	}
	all = append(append(append(all, book.status.grpc...), own.additional...), own.endpoints...)
	if own.endpoints != nil {
		all = append(all, labelHTTPMethod)
	}
	for _, a := range own.aliases {
		all = append(all, a.first)
	}
	if !book.normalizing {
		all = append(all, decode.LabelKind)
	}
	if book.peers.kinds.Has(k) {
		all = append(all, l.peers...)
	}
	if book.peers.base.Has(k) {
		all = append(all, labelBaseService)
	}
	return spantable.LabelsOf(all...)
}

// label is the number of a tag's name.
type label = spantable.Label

// Labels of the tags that the rules always ask for. They follow the labels of the decoder.
const (
	// Tags that decide whether and with which weight a span is counted.
	labelTopLevel label = iota + decode.TraceLabels
	labelTracerTopLevel
	labelMeasured
	labelPartialVersion
	labelSampleRate
	// Tags that keys are made of.
	labelHTTPStatus
	labelOTelHTTPStatus
	labelGRPCStatus // the first of five, in the order of agent.GRPCStatusTags
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

// fixedTags contains the names of the tags above.
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

// Labels configures the labels of spans.
type Labels struct {
	// OfTracer selects the labels of the tracer's own statistics instead of the agent's.
	OfTracer bool
	// AdditionalTags are the names of tags that become labels, as the operator configured the
	// tracers. If a tracer accepts fewer, the first ones count.
	AdditionalTags []string
	// RenamesResources reports whether tracers rename resources. Some tracers have HTTP labels only
	// then.
	RenamesResources bool
	// Ignore contains the rules for spans that are not counted; nil counts every span.
	Ignore *ignore.List
	// TraceIDs enables Counter.Kept.
	TraceIDs bool
}

// Check validates l. The error names everything that is invalid.
func (l *Labels) Check() (err error) {
	for _, name := range l.AdditionalTags {
		if name == "" || len(name) > span.MaxLabel || strings.Contains(name, ":") {
			err = errors.Join(err, fmt.Errorf("check apm-additional-tags: "+
				"%q is not a tag name: it has 1 to %d bytes and no colon", name, span.MaxLabel))
		}
	}
	return err
}

// Policy defines which spans are counted, and under which labels.
type Policy struct {
	id       rules.PolicyID
	labels   *labels
	ignored  *ignore.List      // rules for spans that are not counted because of their tags
	kinds    spantable.KindSet // kinds of spans that are always counted
	ignore   []*regexp.Regexp  // a trace is not counted if its root's resource matches
	ofTracer bool
	traceIDs bool // Counter.Kept is enabled
}

// NewPolicy returns the policy for the features of an agent. It reports false if the agent asks for
// a feature that only the agent implements; traces must then be left to the agent.
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

// Tags returns the names of all tags that rules ask for. Other tags do not affect how a span is
// counted.
func (p *Policy) Tags() []string {
	return slices.DeleteFunc(slices.Clone(p.labels.names), func(name string) bool { return name == "" })
}

// Names returns the tags with their labels, for a decoder.
func (p *Policy) Names() *spantable.Names { return p.labels.table }

// ignores reports whether the agent ignores a trace because of its root's resource.
func (p *Policy) ignores(resource []byte) bool {
	return slices.ContainsFunc(p.ignore, func(r *regexp.Regexp) bool { return r.Match(resource) })
}
