package datadog

import (
	agent "github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// rulebook is whose rules say which spans count and under which labels: the agent's, or those of
// one language's tracer, which has rules of its own for the statistics that it computes itself.
// What differs between them stands in this one table, read from the tracers' sources.
type rulebook struct {
	lang      string // of the headers of its traces, "" for the agent's rules
	statsLang string // of its statistics, where they call the language something else
	counting
	labelling
	peers  peerRules
	status statusRules
}

// counting is which spans count, besides those that are top-level or measured.
type counting struct {
	counts       spantable.KindSet        // of a kind that the agent wants counted, those of these kinds
	lastingOnly  bool                     // none that took no time
	heedsIgnored bool                     // none of a trace that the agent leaves out for its root's resource
	weighs       bool                     // each stands for as many as its trace's sample rate says
	isSynthetic  func(origin string) bool // whether an origin is that of a synthetic test
}

// labelling is under which labels they count.
type labelling struct {
	mending       bool    // the agent's: on tags as its receiver leaves them, and a kind that it knows
	foldsKind     bool    // a kind in capitals is one
	rootUnsaid    bool    // whether a span is its trace's root is not told
	noMainService bool    // its payloads do not say which service the process is
	endpoints     []label // that an HTTP endpoint is read from: the first that says something
	emptyEndpoint bool    // the first that is there, though it says nothing
	renamedOnly   bool    // no HTTP method and endpoint unless resources are renamed
	additional    int     // how many additional tags at most, the first that the operator names
	sortsTags     bool    // the first in the order of their names
}

// peerRules are which tags are labels of a span's peer.
type peerRules struct {
	kinds      spantable.KindSet // of spans whose peer tags are labels
	base       spantable.KindSet // for which the base service alone is one
	baseAlways bool              // also where the agent asks for no peer tags
	raw        bool              // addresses in peer tags are not blocked
	textOnly   bool              // what was written as a number is no peer or additional tag
	aliases    []alias           // names that a tag of another name answers to
}

// alias is a tag that a tracer knows by a second name, and sends by the first, on spans of some
// kinds.
type alias struct {
	second, first string
	kinds         spantable.KindSet
}

// statusRules are where the status of a call is read from.
type statusRules struct {
	grpc       []label // that a gRPC status is read from, in this order
	textFirst  bool    // all that were written as text before all numbers
	anySystem  bool    // also where the tags do not say that it is one of gRPC
	rawGRPC    bool    // as it stands there, and only of a span of type "rpc"
	otel       bool    // an HTTP status may stand where OpenTelemetry puts it
	digitsOnly bool    // in text an HTTP status is digits and nothing else
}

// rulebookID numbers them. It is part of what a remembered key is made of.
type rulebookID uint8

const (
	ofAgent rulebookID = iota
	ofGo
	ofPython
	ofNode
	ofJava
	rulebookCount
)

var (
	talking    = spantable.KindsOf(spantable.KindClient, spantable.KindProducer, spantable.KindConsumer)
	calling    = spantable.KindsOf(spantable.KindClient, spantable.KindProducer)
	called     = spantable.KindsOf(spantable.KindServer, spantable.KindConsumer)
	internal   = spantable.KindsOf(spantable.KindInternal)
	unknown    = spantable.KindsOf(spantable.KindUnknown)
	everyKind  = ^spantable.KindsOf(spantable.KindUnspecified)
	grpcLabels = []label{
		labelGRPCStatus, labelGRPCStatus + 1, labelGRPCStatus + 2, labelGRPCStatus + 3,
		labelRPCResponseStatus,
	}
)

func isSyntheticsItself(origin string) bool { return origin == "synthetics" }

var rulebooks = [rulebookCount]rulebook{
	ofAgent: {
		counting: counting{
			counts: everyKind, heedsIgnored: true, weighs: true, isSynthetic: agent.Synthetics,
		},
		labelling: labelling{mending: true},
		peers:     peerRules{kinds: talking, base: internal},
		status:    statusRules{grpc: grpcLabels, otel: true},
	},
	ofGo: {
		lang:      "go",
		counting:  counting{counts: everyKind, heedsIgnored: true, isSynthetic: agent.Synthetics},
		labelling: labelling{foldsKind: true, endpoints: []label{labelHTTPEndpoint}, additional: 6},
		peers:     peerRules{kinds: talking, base: internal | unknown, textOnly: true},
		status:    statusRules{grpc: grpcLabels, otel: true},
	},
	ofPython: {
		lang:     "python",
		counting: counting{counts: everyKind, heedsIgnored: true, isSynthetic: agent.Synthetics},
		labelling: labelling{
			foldsKind: true, endpoints: []label{labelHTTPEndpoint, labelHTTPRoute}, emptyEndpoint: true,
			additional: 4, sortsTags: true,
		},
		peers:  peerRules{kinds: talking, base: everyKind &^ talking, baseAlways: true, textOnly: true},
		status: statusRules{grpc: grpcLabels[:4], textFirst: true, digitsOnly: true},
	},
	ofNode: {
		lang: "nodejs", statsLang: "javascript",
		counting: counting{isSynthetic: isSyntheticsItself},
		labelling: labelling{
			rootUnsaid: true, noMainService: true, endpoints: []label{labelHTTPRoute, labelHTTPEndpoint},
		},
		status: statusRules{
			grpc:      []label{labelGRPCStatus + 3, labelGRPCStatus, labelRPCResponseStatus},
			anySystem: true,
		},
	},
	ofJava: {
		lang:     "java",
		counting: counting{counts: everyKind, lastingOnly: true, isSynthetic: isSyntheticsItself},
		labelling: labelling{
			endpoints: []label{labelHTTPEndpoint}, renamedOnly: true, additional: 4, sortsTags: true,
		},
		peers: peerRules{kinds: talking, base: internal, baseAlways: true, raw: true, aliases: []alias{
			{"db.system", "db.type", everyKind},
			{"server.address", "peer.hostname", calling},
			{"server.address", "http.hostname", called},
		}},
		status: statusRules{grpc: []label{labelGRPCStatus}, rawGRPC: true, digitsOnly: true},
	},
}

// rulebookOf is the rulebook of a language's tracer. One whose rules are not known is counted by
// those of the agent.
func rulebookOf(lang string) rulebookID {
	for id := ofAgent + 1; id < rulebookCount; id++ {
		if rulebooks[id].lang == lang {
			return id
		}
	}
	return ofAgent
}
