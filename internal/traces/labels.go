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
	labelBaseService
	labelPeerService
	labelProcessTags
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
	labelBaseService: rules.TagBaseService, labelPeerService: "peer.service", labelProcessTags: "_dd.tags.process",
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
	names []string                 // by label
	peers []label                  // in the order of their names
	inKey [len(kindNames)]labelSet // by the kind of a span, what its key is made of
	table *nameTable
}

// newLabels numbers the fixed tags and those that the agent wants of a peer. It
// reports false where those are too many, or are such as the agent itself no
// longer keeps among a span's tags.
func newLabels(peerTags []string) (*labels, bool) {
	l := &labels{names: slices.Clone(fixedTags[:])}
	peerTags = slices.Clone(peerTags)
	slices.Sort(peerTags)
	for _, name := range slices.Compact(peerTags) {
		switch name {
		case "":
			continue
		case rules.TagKind, "env", "version", "component":
			return nil, false
		}
		at := label(max(0, slices.Index(fixedTags[:], name)))
		if at == labelOther {
			if len(l.names) == maxLabels {
				return nil, false
			}
			at = label(len(l.names))
			l.names = append(l.names, name)
		}
		l.peers = append(l.peers, at)
	}
	for k := range l.inKey {
		l.inKey[k] = l.keyOf(kind(k))
	}
	l.table = newNameTable(l.names)
	return l, true
}

// find returns the number of a tag's name, labelOther where no rule asks for it.
func (l *labels) find(name []byte) label { return label(l.table.find(name)) }

// keyOf are the labels that the key of a span of that kind is made of.
func (l *labels) keyOf(k kind) (set labelSet) {
	for at := labelHTTPStatus; at <= labelServiceSource; at++ {
		set.add(at)
	}
	switch k {
	case kindClient, kindProducer, kindConsumer:
		for _, at := range l.peers {
			set.add(at)
		}
	case kindInternal:
		set.add(labelBaseService)
	}
	return set
}
