package traces

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/client/rules"
)

// label is the number of a tag that a rule asks for. 0 is every other tag.
type label uint8

const (
	labelOther label = iota
	// What is a trace's more than its span's in the older formats.
	labelKind
	labelEnv
	labelVersion
	labelHostname
	labelCommit
	labelOrigin
	labelPriority
	// What decides whether a span is counted, and how often.
	labelTopLevel
	labelTracerTopLevel
	labelMeasured
	labelPartialVersion
	labelSampleRate
	labelSpanSampling
	labelEventRate
	// What keys are made of.
	labelHTTPStatus
	labelOTelHTTPStatus
	labelGRPCStatus // and the four after it, in the order of rules.GRPCStatusTags
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
	labelProcessTags
	labelTraceHigh
	fixedLabels
)

// wanted is 1 for a label and 0 for labelOther.
func wanted(l label) int {
	if l != labelOther {
		return 1
	}
	return 0
}

// fixedTags are the names of the tags above.
var fixedTags = [fixedLabels]string{
	labelKind: rules.TagKind, labelEnv: "env", labelVersion: "version", labelHostname: "_dd.hostname",
	labelCommit: "_dd.git.commit.sha", labelOrigin: "_dd.origin", labelPriority: "_sampling_priority_v1",
	labelTopLevel: rules.TagTopLevel, labelTracerTopLevel: rules.TagTracerTopLevel, labelMeasured: rules.TagMeasured,
	labelPartialVersion: rules.TagPartialVersion, labelSampleRate: rules.TagSampleRate,
	labelSpanSampling: "_dd.span_sampling.mechanism", labelEventRate: "_dd1.sr.eausr",
	labelHTTPStatus: rules.TagHTTPStatus, labelOTelHTTPStatus: rules.TagOTelHTTPStatus,
	labelGRPCStatus: rules.GRPCStatusTags[0], labelGRPCStatus + 1: rules.GRPCStatusTags[1], labelGRPCStatus + 2: rules.GRPCStatusTags[2],
	labelGRPCStatus + 3: rules.GRPCStatusTags[3], labelRPCResponseStatus: rules.GRPCStatusTags[4],
	labelRPCSystemName: rules.TagRPCSystemName, labelRPCSystem: rules.TagRPCSystem, labelServiceSource: "_dd.svc_src",
	labelHTTPMethod: "http.method", labelHTTPEndpoint: "http.endpoint", labelHTTPRoute: "http.route",
	labelBaseService: rules.TagBaseService, labelPeerService: "peer.service", labelProcessTags: "_dd.tags.process",
	labelTraceHigh: "_dd.p.tid",
}

// maxLabels bounds them, and with them what an agent may ask for in peer tags.
const maxLabels = 256

// labelSet is a set of labels.
type labelSet [maxLabels / 64]uint64

func (s *labelSet) add(l label)      { s[l>>6] |= 1 << (l & 63) }
func (s *labelSet) has(l label) bool { return s[l>>6]&(1<<(l&63)) != 0 }

// labels finds the number of a tag by its name. It never changes; another agent's
// policy make another one.
type labels struct {
	names []string // by label
	peers []label  // in the order of their names
	of    [rulebookCount]labelsOf
	table *nameTable

	traceIDs bool // are asked for
}

// labelsOf is what keys are made of by the rules of one rulebook.
type labelsOf struct {
	inKey      [len(kindNames)]labelSet // by the kind of a span
	endpoints  []label                  // nil where neither HTTP method nor endpoint is a label
	additional []label
	aliases    []labelAlias
}

// labelAlias is an alias of a tag that is asked for.
type labelAlias struct {
	second, first label
	kinds         kindSet
}

// newLabels numbers the fixed tags, those that the agent wants of a peer, and those that
// tracers add. It reports false where those are too many, or are such as the agent itself no
// longer keeps among a span's tags.
func newLabels(peerTags []string, more Labels) (*labels, bool) {
	l := &labels{names: slices.Clone(fixedTags[:]), traceIDs: more.TraceIDs}
	if !more.OfTracer {
		clear(l.names[labelHTTPMethod : labelHTTPRoute+1]) // no tags to look for
	}
	if !more.TraceIDs {
		l.names[labelTraceHigh] = ""
	}
	peerTags = slices.Clone(peerTags)
	slices.Sort(peerTags)
	for _, name := range slices.Compact(peerTags) {
		switch name {
		case "":
			continue
		case rules.TagKind, "env", "version", "component":
			return nil, false
		}
		at, ok := l.number(name)
		if !ok {
			return nil, false
		}
		l.peers = append(l.peers, at)
	}
	for id := range l.of {
		if ok := id == int(ofAgent) || !more.OfTracer || l.addTracers(rulebookID(id), more); !ok {
			return nil, false
		}
		for k := range l.of[id].inKey {
			l.of[id].inKey[k] = l.keyOf(rulebookID(id), kind(k))
		}
	}
	l.table = newNameTable(l.names)
	return l, true
}

// number gives a tag a number, unless it has one or there are too many.
func (l *labels) number(name string) (at label, ok bool) {
	if at := slices.Index(l.names, name); at > int(labelOther) {
		return label(at), true
	}
	if len(l.names) == maxLabels {
		return labelOther, false
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
	for _, a := range d.aliases {
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

// find returns the number of a tag's name, labelOther where no rule asks for it.
func (l *labels) find(name []byte) label { return label(l.table.find(name)) }

// keyOf are the labels that the key of a span of that kind is made of.
func (l *labels) keyOf(id rulebookID, k kind) (set labelSet) {
	d, own := &rulebooks[id], &l.of[id]
	add := func(all ...label) {
		for _, at := range all {
			set.add(at)
		}
	}
	add(labelHTTPStatus, labelOTelHTTPStatus, labelRPCSystemName, labelRPCSystem, labelServiceSource)
	add(d.grpc...)
	add(own.additional...)
	if add(own.endpoints...); own.endpoints != nil {
		add(labelHTTPMethod)
	}
	for _, a := range own.aliases {
		add(a.first)
	}
	if !d.mending {
		add(labelKind)
	}
	if d.peers.has(k) {
		add(l.peers...)
	}
	if d.base.has(k) {
		add(labelBaseService)
	}
	return set
}
