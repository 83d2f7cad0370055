package apm

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/client/rules"
)

// label is the number of a tag that a rule asks for. 0 is every other tag.
type label uint16

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

// labels finds the number of a tag by its name: a flat table, since it is asked
// for every tag of every span. It never changes; another agent's wishes make
// another one.
type labels struct {
	names []string // by label
	peers []label  // in the order of their names
	slots [1024]uint16
	some  [256]uint64 // by first byte, the lengths of the names, for a quick no
}

// newLabels numbers the fixed tags and those that the agent wants of a peer. It
// reports false where those are too many, or are such as the agent itself no
// longer keeps among a span's tags.
func newLabels(peerTags []string) (*labels, bool) {
	l := &labels{names: slices.Clone(fixedTags[:])}
	for at := 1; at < len(l.names); at++ {
		l.insert(label(at))
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
		at := l.find([]byte(name))
		if at == labelOther {
			if len(l.names) == maxLabels {
				return nil, false
			}
			at = label(len(l.names))
			l.names = append(l.names, name)
			l.insert(at)
		}
		l.peers = append(l.peers, at)
	}
	return l, true
}

// slot begins the search for a name of at least one byte: by its length and four
// of its bytes, which tell all names apart that agents ask for today.
func (l *labels) slot(name string) uint32 {
	n := len(name)
	h := uint32(n) | uint32(name[0])<<8 | uint32(name[n-1])<<16 | uint32(name[n/2])<<24
	return (h ^ uint32(name[n/4])<<3) * 0x9e3779b1 >> 22
}

func (l *labels) insert(at label) {
	name := l.names[at]
	l.some[name[0]] |= 1 << (len(name) & 63)
	i := l.slot(name)
	for l.slots[i] != 0 {
		i = (i + 1) % uint32(len(l.slots))
	}
	l.slots[i] = uint16(at)
}

// find returns the number of a tag's name, labelOther where no rule asks for it.
func (l *labels) find(name []byte) label {
	if len(name) == 0 || l.some[name[0]]&(1<<(len(name)&63)) == 0 {
		return labelOther
	}
	s := view(name)
	for i := l.slot(s); l.slots[i] != 0; i = (i + 1) % uint32(len(l.slots)) {
		if at := l.slots[i]; l.names[at] == s {
			return label(at)
		}
	}
	return labelOther
}
