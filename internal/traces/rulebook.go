package traces

import "github.com/spanstatsd/spanstatsd/client/rules"

// rulebook is whose rules say which spans count and under which labels: the agent's, or those
// of one language's tracer, which has rules of its own for the statistics that it computes
// itself. What differs between them stands in this one table, read from the tracers' sources.
type rulebook struct {
	lang      string // of the headers of its traces, "" for the agent's rules
	statsLang string // of its statistics, where they call the language something else

	// Which spans count, besides those that are top-level or measured.
	counts       kindSet // of a kind that the agent wants counted, those of these kinds
	lastingOnly  bool    // none that took no time
	heedsIgnored bool    // none of a trace that the agent leaves out for its root's resource
	weighs       bool    // each stands for as many as its trace's sample rate says

	// Under which labels.
	mending       bool                     // the agent's: on tags as its receiver leaves them, and a kind that it knows
	foldsKind     bool                     // a kind in capitals is one
	rootUnsaid    bool                     // whether a span is its trace's root is not told
	noMainService bool                     // its payloads do not say which service the process is
	peers         kindSet                  // the kinds of spans whose peer tags are labels
	base          kindSet                  // the kinds for which the base service alone is one
	baseAlways    bool                     // also where the agent asks for no peer tags
	rawPeers      bool                     // addresses in peer tags are not blocked
	textTags      bool                     // what was written as a number is no peer or additional tag
	aliases       []alias                  // names that a tag of another name answers to
	endpoints     []label                  // that an HTTP endpoint is read from: the first that says something
	emptyEndpoint bool                     // the first that is there, though it says nothing
	renamedOnly   bool                     // no HTTP method and endpoint unless resources are renamed
	additional    int                      // how many additional tags at most, the first that the operator names
	sortsTags     bool                     // the first in the order of their names
	grpc          []label                  // that a gRPC status is read from, in this order
	textGRPC      bool                     // all that were written as text before all numbers
	anySystem     bool                     // also where the tags do not say that it is one of gRPC
	rawGRPC       bool                     // as it stands there, and only of a span of type "rpc"
	otelStatus    bool                     // an HTTP status may stand where OpenTelemetry puts it
	digitStatus   bool                     // in text it is digits and nothing else
	isSynthetic   func(origin string) bool // whether an origin is that of a synthetic test
}

// alias is a tag that a tracer knows by a second name, and sends by the first, on spans of
// some kinds.
type alias struct {
	second, first string
	kinds         kindSet
}

// rulebookID numbers them. It is part of what a cached key is made of.
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
	talking    = kindsOf(kindClient, kindProducer, kindConsumer)
	everyKind  = kindsOf(kindUnknown, kindInternal, kindServer, kindClient, kindProducer, kindConsumer, kindOther)
	grpcLabels = []label{labelGRPCStatus, labelGRPCStatus + 1, labelGRPCStatus + 2, labelGRPCStatus + 3, labelRPCResponseStatus}
)

func isSyntheticsItself(origin string) bool { return origin == "synthetics" }

var rulebooks = [rulebookCount]rulebook{
	ofAgent: {
		counts: everyKind, heedsIgnored: true, weighs: true, mending: true,
		peers: talking, base: kindsOf(kindInternal), grpc: grpcLabels, otelStatus: true, isSynthetic: rules.Synthetics,
	},
	ofGo: {
		lang: "go", counts: everyKind, heedsIgnored: true, foldsKind: true,
		peers: talking, base: kindsOf(kindUnknown, kindInternal), textTags: true,
		endpoints: []label{labelHTTPEndpoint}, additional: 6, grpc: grpcLabels, otelStatus: true, isSynthetic: rules.Synthetics,
	},
	ofPython: {
		lang: "python", counts: everyKind, heedsIgnored: true, foldsKind: true,
		peers: talking, base: everyKind &^ talking, baseAlways: true, textTags: true,
		endpoints: []label{labelHTTPEndpoint, labelHTTPRoute}, emptyEndpoint: true, additional: 4, sortsTags: true,
		grpc: grpcLabels[:4], textGRPC: true, digitStatus: true, isSynthetic: rules.Synthetics,
	},
	ofNode: {
		lang: "nodejs", statsLang: "javascript", rootUnsaid: true, noMainService: true,
		endpoints:   []label{labelHTTPRoute, labelHTTPEndpoint},
		grpc:        []label{labelGRPCStatus + 3, labelGRPCStatus, labelRPCResponseStatus},
		anySystem:   true,
		isSynthetic: isSyntheticsItself,
	},
	ofJava: {
		lang: "java", counts: everyKind, lastingOnly: true,
		peers: talking, base: kindsOf(kindInternal), baseAlways: true, rawPeers: true,
		aliases: []alias{
			{"db.system", "db.type", everyKind},
			{"server.address", "peer.hostname", kindsOf(kindClient, kindProducer)},
			{"server.address", "http.hostname", kindsOf(kindServer, kindConsumer)},
		},
		endpoints: []label{labelHTTPEndpoint}, renamedOnly: true, additional: 4, sortsTags: true,
		grpc: []label{labelGRPCStatus}, rawGRPC: true, digitStatus: true, isSynthetic: isSyntheticsItself,
	},
}

// rulebookOf is the rulebook of a language's tracer. One whose rules are not known is counted
// by those of the agent.
func rulebookOf(lang string) rulebookID {
	for id := ofAgent + 1; id < rulebookCount; id++ {
		if rulebooks[id].lang == lang {
			return id
		}
	}
	return ofAgent
}
