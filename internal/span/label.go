package span

// Label identifies a label of a Key. The order is that of the wire format: text labels first, then lists of
// tags, then the numeric label.
type Label uint8

const (
	LabelService Label = iota
	LabelOperation
	LabelResource
	LabelType
	LabelKind
	LabelHTTPMethod
	LabelHTTPEndpoint
	LabelGRPCStatus
	LabelServiceSource
	LabelPeerTag       // list of tags
	LabelAdditionalTag // list of tags
	LabelHTTPStatus    // number

	// WholeKey is not a label. It identifies the loss of all labels of a key.
	WholeKey

	EndOfTexts = LabelPeerTag    // labels below it are texts
	FirstList  = EndOfTexts      // label of the first list of tags
	EndOfLists = LabelHTTPStatus // labels below it are texts or lists
	LabelCount = int(WholeKey)   // number of labels of all kinds
)

// labelSpec describes a label, except for its field in Key. The test of the labels table lists the other places
// that must be edited to add a label.
type labelSpec struct {
	name      string // name in metrics and in --cardinality-limit
	agentName string // name in the agent's statistics
	maxBytes  int    // maximum length of the text or of one tag; longer ones are truncated
	maxTags   int    // maximum length of a list; further tags are dropped
	// maximum number of distinct texts per origin and interval; for a list, of distinct tags per tag key
	budget           int
	blocksLongValues bool        // for a list: Blocked replaces the value of a tag if it exceeds maxBytes
	required         bool        // never empty after Normalize
	rules            *labelRules // naming rules of the agent; nil if any UTF-8 text of maxBytes is valid
}

// labelRules are the naming rules for a label.
type labelRules struct {
	isNormal  func(text string) bool // reports whether normalize would leave the text unchanged
	normalize func(text, lang string) string
}

// labels describes all labels. The maximum lengths and the agent's names are copied from the agent,
// including srv_src. The budgets are those of the Datadog tracers, so that moving statistics from a tracer
// to this daemon keeps the same labels. Budgets of 64 or less are doubled, because a value that occurs only
// once can use only half of a budget, and span kinds, for example, have more than half of eight values. The budget
// of services is doubled twice, so that each of 40 services keeps its first span.
var labels = [LabelCount]labelSpec{
	LabelService: {
		name: "service", agentName: "Service", maxBytes: MaxService, budget: 128, required: true,
		rules: &labelRules{IsServiceName, ServiceName},
	},
	LabelOperation: {
		name: "operation", agentName: "Name", maxBytes: MaxOperation, budget: 128, required: true,
		rules: &labelRules{isOperationName, func(name, _ string) string { return operationName(name) }},
	},
	LabelResource: {
		name: "resource", agentName: "Resource", maxBytes: MaxResource, budget: 1024,
		required: true,
	},
	LabelType:          {name: "type", agentName: "Type", maxBytes: MaxType, budget: 32},
	LabelKind:          {name: "span_kind", agentName: "SpanKind", maxBytes: MaxLabel, budget: 16},
	LabelHTTPMethod:    {name: "http_method", agentName: "HTTPMethod", maxBytes: MaxLabel, budget: 32},
	LabelHTTPEndpoint:  {name: "http_endpoint", agentName: "HTTPEndpoint", maxBytes: MaxLabel, budget: 512},
	LabelGRPCStatus:    {name: "grpc_status", agentName: "GRPCStatusCode", maxBytes: MaxLabel, budget: 48},
	LabelServiceSource: {name: "service_source", agentName: "srv_src", maxBytes: MaxLabel, budget: 32},
	LabelPeerTag: {
		name: "peer_tag", agentName: "PeerTags", maxBytes: MaxLabel, maxTags: MaxPeerTags,
		budget: 512,
	},
	LabelAdditionalTag: {
		name: "additional_tag", agentName: "AdditionalMetricTags", maxBytes: MaxLabel,
		maxTags: MaxAdditionalTags, blocksLongValues: true, budget: 100,
	},
	// Over its budget, a status becomes 0, which means that it is absent: a number has no Blocked value.
	LabelHTTPStatus: {name: "http_status", budget: 64},
}

// maxAdditionalTag is the number of bytes of an additional tag that are read: the key, the colon, the value, and one
// more byte, which shows that the value is too long.
const maxAdditionalTag = MaxLabel + len(":") + MaxLabel + 1

// String returns the name of the label in metrics and in --cardinality-limit.
func (l Label) String() string {
	if l == WholeKey {
		return "whole_key"
	}
	return labels[l].name
}

// IsText reports whether the label is a text, and not a list of tags or a number.
func (l Label) IsText() bool { return l < EndOfTexts }

// AgentName returns the name of the label's field in the agent's statistics.
func (l Label) AgentName() string { return labels[l].agentName }

// MaxBytes returns the number of bytes of a text, or of a tag, that can affect its normalized form.
func (l Label) MaxBytes() int {
	if labels[l].blocksLongValues {
		return maxAdditionalTag
	}
	return labels[l].maxBytes
}

// Fits reports whether text, the value of the label or one tag of a list, is short enough to be kept
// unchanged.
func (l Label) Fits(text string) bool { return len(text) <= labels[l].maxBytes }

// MaxTags returns the maximum number of tags in a list.
func (l Label) MaxTags() int { return labels[l].maxTags }

// Budget returns the default number of distinct values that an origin may have per interval.
func (l Label) Budget() int { return labels[l].budget }

// Text returns a pointer to the field of a text label.
func (k *Key) Text(l Label) *string {
	switch l {
	case LabelService:
		return &k.Service
	case LabelOperation:
		return &k.Operation
	case LabelResource:
		return &k.Resource
	case LabelType:
		return &k.Type
	case LabelKind:
		return &k.Kind
	case LabelHTTPMethod:
		return &k.HTTPMethod
	case LabelHTTPEndpoint:
		return &k.HTTPEndpoint
	case LabelGRPCStatus:
		return &k.GRPCStatus
	case LabelServiceSource:
		return &k.ServiceSource
	}
	panic("BUG: " + l.String() + " is not a text")
}

// Tags returns a pointer to the field of a label that is a list of tags.
func (k *Key) Tags(l Label) *[]string {
	switch l {
	case LabelPeerTag:
		return &k.PeerTags
	case LabelAdditionalTag:
		return &k.AdditionalTags
	}
	panic("BUG: " + l.String() + " is not a list")
}

// At returns a pointer to the text of a label, or for a list to its tag with the given index. For a text, index is
// ignored.
func (k *Key) At(l Label, index int) *string {
	if l < FirstList {
		return k.Text(l)
	}
	return &(*k.Tags(l))[index]
}

// ParseLabel returns the label with the given name, and whether there is one.
func ParseLabel(name string) (Label, bool) {
	for l := range WholeKey {
		if labels[l].name == name {
			return l, true
		}
	}
	return 0, false
}

// LabelNames returns the names of all labels.
func LabelNames() []string {
	names := make([]string, LabelCount)
	for l := range labels {
		names[l] = labels[l].name
	}
	return names
}
