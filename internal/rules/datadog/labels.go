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
	names        []string // name of each label
	peers        []label  // peer tags, sorted by name
	byRulebook   [rulebookCount]rulebookLabels
	table        *spantable.Names // names for the decoder
	ignoreLabels []label          // tags that the rules of Labels.Ignore match
}

// rulebookLabels contains the labels of one rulebook.
type rulebookLabels struct {
	keyLabels  [spantable.Kinds]spantable.LabelSet // for each kind of spans, the tags that affect the key
	endpoints  []label                             // tags of the HTTP endpoint; nil if keys have no HTTP method and endpoint
	additional []label
	aliases    []labelAlias
}

// labelAlias is an alias of a rulebook, with labels instead of names.
type labelAlias struct {
	name, sentAs label
	kinds        spantable.KindSet
}

// newLabels assigns labels, numbers that stand for names, to all tags that affect how spans are
// counted: the fixed tags, the peer tags that the Datadog agent is configured with, and the tags in
// config. It returns false if there are too many tags, or if a peer tag is one that the agent does not
// read from the tags of spans.
func newLabels(peerTags []string, config Labels) (*labels, bool) {
	l := &labels{names: slices.Clone(fixedTags[:])}
	copy(l.names, decode.TraceTags[:])
	if !config.OfTracer {
		clear(l.names[labelHTTPMethod : labelHTTPRoute+1]) // the agent's rules read no HTTP tags
	}
	if !config.TraceIDs {
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
		peer, ok := l.findOrAdd(name)
		if !ok {
			return nil, false
		}
		l.peers = append(l.peers, peer)
	}
	for _, name := range config.Ignore.AttributeNames() {
		tag, ok := l.findOrAdd(name)
		if !ok {
			return nil, false
		}
		l.ignoreLabels = append(l.ignoreLabels, tag)
	}
	for id := range rulebookCount {
		isTracers := id != agentRules
		if isTracers && config.OfTracer && !l.addTracerLabels(id, config) {
			return nil, false
		}
		for k := range spantable.Kinds {
			l.byRulebook[id].keyLabels[k] = l.labelsInKey(id, k)
		}
	}
	l.table = spantable.NewNames(l.names)
	return l, true
}

// findOrAdd returns the label of the tag with the given name. If the tag has no label yet, findOrAdd assigns
// the next number to it. ok is false if all numbers are used.
func (l *labels) findOrAdd(name string) (tag label, ok bool) {
	existing := slices.Index(l.names, name)
	hasLabel := existing > int(spantable.Other) // Other stands for all names without a label
	if hasLabel {
		return label(existing), true
	}
	if len(l.names) == spantable.MaxLabels {
		return spantable.Other, false
	}
	l.names = append(l.names, name)
	return label(len(l.names) - 1), true
}

// addTracerLabels assigns labels to the tags that the agent's rules do not read but those of a tracer do, which id
// identifies: HTTP endpoints, additional tags, and tags that it sends under other names. It returns false if there are
// too many different tags.
func (l *labels) addTracerLabels(id rulebookID, config Labels) bool {
	book, ruleLabels := &rulebooks[id], &l.byRulebook[id]
	// Some tracers determine the HTTP endpoint only if they use it to rename resources.
	omitsEndpoint := book.needsRenamedResources && !config.RenamesResources
	if !omitsEndpoint {
		ruleLabels.endpoints = book.endpoints
	}
	if !l.addAdditionalTags(book, ruleLabels, config.AdditionalTags) {
		return false
	}
	return l.addAliases(book, ruleLabels)
}

// addAdditionalTags adds the tags with the given names, which the operator has configured, to ruleLabels.
// It ignores names beyond the maximum of the tracer. It returns false if there are too many different tags.
func (l *labels) addAdditionalTags(book *rulebook, ruleLabels *rulebookLabels, names []string) bool {
	names = slices.Clone(names)
	if book.sortsTags { // decides which names the tracer accepts
		slices.Sort(names)
	}
	accepted := names[:min(book.maxAdditional, len(names))]
	for _, name := range accepted {
		tag, ok := l.findOrAdd(name)
		if !ok {
			return false
		}
		ruleLabels.additional = append(ruleLabels.additional, tag)
	}
	return true
}

// addAliases adds the aliases of book to ruleLabels: tags that a tracer sends in place of others, such as
// db.type in place of db.system. It skips an alias if no rule reads the tag in whose place it is sent. It
// returns false if there are too many different tags.
func (l *labels) addAliases(book *rulebook, ruleLabels *rulebookLabels) bool {
	for _, a := range book.peers.aliases {
		original := slices.Index(l.names, a.name)
		if original < 0 {
			continue
		}
		sentAs, ok := l.findOrAdd(a.sentAs)
		if !ok {
			return false
		}
		ruleLabels.aliases = append(ruleLabels.aliases, labelAlias{label(original), sentAs, a.kinds})
	}
	return true
}

// labelsInKey returns the labels of all tags that can affect the key under which a span of the given kind is counted.
// id identifies the rules by which it is counted.
func (l *labels) labelsInKey(id rulebookID, kind spantable.Kind) spantable.LabelSet {
	book, ruleLabels := &rulebooks[id], &l.byRulebook[id]
	all := []label{
		labelHTTPStatus, labelOTelHTTPStatus, labelRPCSystemName, labelRPCSystem, labelServiceSource,
	}
	all = append(all, book.status.grpc...)
	all = append(all, ruleLabels.additional...)
	hasHTTPLabels := ruleLabels.endpoints != nil
	if hasHTTPLabels {
		all = append(all, ruleLabels.endpoints...)
		all = append(all, labelHTTPMethod)
	}
	for _, a := range ruleLabels.aliases {
		all = append(all, a.sentAs)
	}
	if !book.followsAgent { // the key then contains the kind as the tracer sent it
		all = append(all, decode.LabelKind)
	}
	if book.peers.kindsWithAllTags.Has(kind) {
		all = append(all, l.peers...)
	}
	if book.peers.kindsWithBaseTag.Has(kind) {
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
	// TraceIDs enables Counter.SampledSpans.
	TraceIDs bool
}

// Check returns an error that names all invalid additional tags, or nil if all are valid.
func (l *Labels) Check() (err error) {
	for _, name := range l.AdditionalTags {
		hasValidLength := name != "" && len(name) <= span.MaxLabel
		if !hasValidLength || strings.Contains(name, ":") {
			err = errors.Join(err, fmt.Errorf("check apm-additional-tags: "+
				"%q is not a tag name; use 1 to %d bytes and no colon", name, span.MaxLabel))
		}
	}
	return err
}

// Policy defines which spans are counted, and under which labels.
type Policy struct {
	id               rules.PolicyID
	labels           *labels
	ignoreRules      *ignore.List      // rules for spans that are not counted because of their tags
	countedKinds     spantable.KindSet // kinds of spans that are always counted
	ignoredResources []*regexp.Regexp  // a trace is not counted if its root's resource matches
	usesTracerRules  bool
	traceIDs         bool // Counter.SampledSpans is enabled
}

// NewPolicy returns the policy for counting spans like a Datadog agent with the given configuration: its
// peer tags, and the span kinds that it counts. ignoreResources are its regular expressions for the resource
// of a root span whose trace it ignores. ok is false if spans can't be counted like that, for example
// because there are too many tags. The caller must then leave all spans to the agent.
func NewPolicy(peerTags, spanKinds, ignoreResources []string, config Labels) (p *Policy, ok bool) {
	l, ok := newLabels(peerTags, config)
	if !ok {
		return nil, false
	}
	ignoredResources, ok := compileAll(ignoreResources)
	if !ok {
		return nil, false
	}
	return &Policy{
		id:               rules.NewPolicyID(),
		labels:           l,
		ignoreRules:      config.Ignore,
		countedKinds:     kindsNamed(spanKinds),
		ignoredResources: ignoredResources,
		usesTracerRules:  config.OfTracer,
		traceIDs:         config.TraceIDs,
	}, true
}

// kindsNamed returns the span kinds with the given names. It ignores unknown names.
func kindsNamed(names []string) (kinds spantable.KindSet) {
	for k := range spantable.Kinds {
		hasName := k != spantable.KindOther
		if hasName && slices.Contains(names, k.String()) {
			kinds |= spantable.KindsOf(k)
		}
	}
	return kinds
}

// compileAll compiles regular expressions. It returns false if one is invalid.
func compileAll(expressions []string) (compiled []*regexp.Regexp, ok bool) {
	for _, expression := range expressions {
		r, err := regexp.Compile(expression)
		if err != nil {
			return nil, false
		}
		compiled = append(compiled, r)
	}
	return compiled, true
}

// Tags returns the names of all tags that can affect how a span is counted, in the order of their
// labels.
func (p *Policy) Tags() []string {
	return slices.DeleteFunc(slices.Clone(p.labels.names), func(name string) bool { return name == "" })
}

// Names returns the tags with their labels, for a decoder.
func (p *Policy) Names() *spantable.Names { return p.labels.table }

// ignoresResource reports whether the agent ignores a trace because of its root's resource.
func (p *Policy) ignoresResource(resource []byte) bool {
	return slices.ContainsFunc(p.ignoredResources, func(r *regexp.Regexp) bool { return r.Match(resource) })
}
