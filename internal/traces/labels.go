package traces

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/client/rules"
)

// label is the number of a tag that a rule asks for. 0 is every other tag.
type label uint8

const (
	labelOther label = iota
	labelTopLevel
	labelTracerTopLevel
	labelMeasured
	labelPartialVersion
	labelSampleRate
	labelKind
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
	labelOrigin
	labelEnv
	labelVersion
	labelHostname
	labelCommit
	labelProcessTags
	labelPriority
	labelSpanSampling
	labelEventRate
	fixedLabels
)

// wanted is 1 for a label and 0 for labelOther.
func wanted(l label) int {
	if l != labelOther {
		return 1
	}
	return 0
}

// fixed has the bits of a set's first word, where all fixed labels are.
var fixed = [maxLabels / 64]uint64{^uint64(0)}

// fixedTags are the tags of the labels above, in that order.
var fixedTags = [fixedLabels]string{
	"", rules.TagTopLevel, rules.TagTracerTopLevel, rules.TagMeasured, rules.TagPartialVersion,
	rules.TagSampleRate, rules.TagKind, rules.TagHTTPStatus, rules.TagOTelHTTPStatus,
	rules.GRPCStatusTags[0], rules.GRPCStatusTags[1], rules.GRPCStatusTags[2], rules.GRPCStatusTags[3], rules.GRPCStatusTags[4],
	rules.TagRPCSystemName, rules.TagRPCSystem, "_dd.svc_src", rules.TagBaseService, "peer.service", "_dd.origin",
	"env", "version", "_dd.hostname", "_dd.git.commit.sha", "_dd.tags.process", "_sampling_priority_v1", "_dd.span_sampling.mechanism", "_dd1.sr.eausr",
}

// maxLabels bounds them, and with them what an agent may ask for in peer tags.
const maxLabels = 256

// labelSet is a set of labels. The fixed ones are all in its first word.
type labelSet [maxLabels / 64]uint64

func (s *labelSet) add(l label)      { s[l>>6] |= 1 << (l & 63) }
func (s *labelSet) has(l label) bool { return s[l>>6]&(1<<(l&63)) != 0 }

// labels finds the number of a tag by its name. It never changes; another agent's
// policy make another one.
type labels struct {
	names []string                 // by label
	peers []label                  // in the order of their names
	inKey [len(kindNames)]labelSet // by the kind of a span, what its key is made of
	finder
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
	return l, l.spread(l.names)
}

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
