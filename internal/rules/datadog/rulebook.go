package datadog

import (
	agent "github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// rulebook defines which spans are counted, and under which labels: those of the Datadog agent, or
// those by which the tracer of one language computes statistics itself. The rules of tracers are taken
// from their source code.
type rulebook struct {
	lang      string // language in the headers of trace requests; "" for the agent's rules
	statsLang string // language in the tracer's statistics, if it differs from lang
	counting
	labeling
	peers  peerRules
	status statusRules
}

// counting defines which spans count, in addition to top-level and measured ones.
type counting struct {
	countableKinds         spantable.KindSet        // kinds that count if the agent asks for them
	ignoresZeroDuration    bool                     // spans with a duration of 0 do not count
	honorsIgnoredResources bool                     // traces that the agent ignores because of the root's resource do not count
	usesSampleRate         bool                     // the sample rate of the trace determines the weight
	isSynthetic            func(origin string) bool // reports whether an origin is a synthetic test
}

// labeling defines the labels of counted spans.
type labeling struct {
	followsAgent          bool    // the agent's rules: labels are read after the normalization in its receiver
	ignoresKindCase       bool    // span kinds may be in upper case
	omitsTraceRoot        bool    // keys do not show whether a span is the root of its trace
	omitsMainService      bool    // payloads do not contain the service of the process
	endpoints             []label // tags of the HTTP endpoint; the first non-empty one counts
	acceptsEmptyEndpoint  bool    // the first existing one of endpoints counts, even if it is empty
	needsRenamedResources bool    // HTTP method and endpoint are labels only if resources are renamed
	maxAdditional         int     // limit on additional tags; the first that the operator names count
	sortsTags             bool    // additional tags are sorted by name before the limit applies
}

// peerRules defines which tags are peer tags.
type peerRules struct {
	kindsWithAllTags spantable.KindSet // kinds of spans that have all peer tags
	kindsWithBaseTag spantable.KindSet // kinds of spans whose only peer tag is _dd.base_service
	alwaysHasBase    bool              // kindsWithBaseTag applies even if the agent asks for no peer tags
	keepsAddresses   bool              // addresses in peer tags are not masked
	ignoresNumbers   bool              // numbers are ignored in peer tags and additional tags
	aliases          []alias           // peer and additional tags that are sent under another name
}

// alias is a tag that a tracer sends under another name, on spans of some kinds.
type alias struct {
	name, sentAs string
	kinds        spantable.KindSet
}

// statusRules defines which tags the status of a call is read from.
type statusRules struct {
	grpc              []label // tags of the gRPC status, in order of preference
	prefersText       bool    // texts take precedence over numbers
	ignoresRPCSystem  bool    // rpc.response.status_code counts even if no tag says that the call is a gRPC call
	keepsRawGRPC      bool    // the gRPC status is not parsed, and is read only from spans of type "rpc"
	readsOTelTag      bool    // the HTTP status is also read from http.response.status_code
	acceptsOnlyDigits bool    // an HTTP status in text may contain only digits
}

// rulebookID identifies a rulebook. It is part of fingerprints.
type rulebookID uint8

const (
	agentRules rulebookID = iota
	goRules
	pythonRules
	nodeRules
	javaRules
	rulebookCount
)

var (
	peerKinds  = spantable.KindsOf(spantable.KindClient, spantable.KindProducer, spantable.KindConsumer)
	callers    = spantable.KindsOf(spantable.KindClient, spantable.KindProducer)
	callees    = spantable.KindsOf(spantable.KindServer, spantable.KindConsumer)
	internal   = spantable.KindsOf(spantable.KindInternal)
	unknown    = spantable.KindsOf(spantable.KindUnknown)
	everyKind  = ^spantable.KindsOf(spantable.KindUnspecified)
	grpcLabels = []label{
		labelGRPCStatus, labelGRPCStatus + 1, labelGRPCStatus + 2, labelGRPCStatus + 3,
		labelRPCResponseStatus,
	}
)

// isSyntheticsOnly reports whether origin is exactly "synthetics". The Datadog agent also accepts a
// longer text with this prefix.
func isSyntheticsOnly(origin string) bool { return origin == "synthetics" }

// rulebooks contains all rulebooks, by ID.
var rulebooks = [rulebookCount]rulebook{
	agentRules: {
		counting: counting{
			countableKinds: everyKind, honorsIgnoredResources: true, usesSampleRate: true, isSynthetic: agent.Synthetics,
		},
		labeling: labeling{followsAgent: true},
		peers:    peerRules{kindsWithAllTags: peerKinds, kindsWithBaseTag: internal},
		status:   statusRules{grpc: grpcLabels, readsOTelTag: true},
	},
	goRules: {
		lang:     "go",
		counting: counting{countableKinds: everyKind, honorsIgnoredResources: true, isSynthetic: agent.Synthetics},
		labeling: labeling{ignoresKindCase: true, endpoints: []label{labelHTTPEndpoint}, maxAdditional: 6},
		peers:    peerRules{kindsWithAllTags: peerKinds, kindsWithBaseTag: internal | unknown, ignoresNumbers: true},
		status:   statusRules{grpc: grpcLabels, readsOTelTag: true},
	},
	pythonRules: {
		lang:     "python",
		counting: counting{countableKinds: everyKind, honorsIgnoredResources: true, isSynthetic: agent.Synthetics},
		labeling: labeling{
			ignoresKindCase: true, endpoints: []label{labelHTTPEndpoint, labelHTTPRoute}, acceptsEmptyEndpoint: true,
			maxAdditional: 4, sortsTags: true,
		},
		peers: peerRules{
			kindsWithAllTags: peerKinds, kindsWithBaseTag: everyKind &^ peerKinds, alwaysHasBase: true, ignoresNumbers: true,
		},
		status: statusRules{grpc: grpcLabels[:4], prefersText: true, acceptsOnlyDigits: true},
	},
	nodeRules: {
		lang: "nodejs", statsLang: "javascript",
		counting: counting{isSynthetic: isSyntheticsOnly},
		labeling: labeling{
			omitsTraceRoot: true, omitsMainService: true, endpoints: []label{labelHTTPRoute, labelHTTPEndpoint},
		},
		status: statusRules{
			grpc:             []label{labelGRPCStatus + 3, labelGRPCStatus, labelRPCResponseStatus},
			ignoresRPCSystem: true,
		},
	},
	javaRules: {
		lang:     "java",
		counting: counting{countableKinds: everyKind, ignoresZeroDuration: true, isSynthetic: isSyntheticsOnly},
		labeling: labeling{
			endpoints: []label{labelHTTPEndpoint}, needsRenamedResources: true, maxAdditional: 4, sortsTags: true,
		},
		peers: peerRules{
			kindsWithAllTags: peerKinds, kindsWithBaseTag: internal, alwaysHasBase: true, keepsAddresses: true,
			aliases: []alias{
				{"db.system", "db.type", everyKind},
				{"server.address", "peer.hostname", callers},
				{"server.address", "http.hostname", callees},
			},
		},
		status: statusRules{grpc: []label{labelGRPCStatus}, keepsRawGRPC: true, acceptsOnlyDigits: true},
	},
}

// rulebookOf returns the ID of the rules by which the tracer for a language counts spans. It returns
// agentRules, the ID of the Datadog agent's rules, if the language is unknown.
func rulebookOf(lang string) rulebookID {
	for id := agentRules + 1; id < rulebookCount; id++ {
		if rulebooks[id].lang == lang {
			return id
		}
	}
	return agentRules
}
