package span

// Label numbers a label of a key, in the order of the wire: first those that are one
// text, then those that are a list of tags, then the one that is a number.
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
	LabelPeerTag       // a list
	LabelAdditionalTag // a list
	LabelHTTPStatus    // a number

	// WholeKey is not a label. It names the loss of all of them at once.
	WholeKey

	FirstList  = LabelPeerTag    // the labels before it are texts
	EndOfLists = LabelHTTPStatus // those before it are texts or lists
	LabelCount = int(WholeKey)   // of all kinds
)

// labelSpec is all that is known of a label but where it lies. The test of this table
// names the places that must be edited besides for a new label.
type labelSpec struct {
	name      string     // in metrics and in --cardinality-limit
	agentName string     // in the agent's statistics
	maxBytes  int        // of the text or of one tag: what is longer is cut
	maxTags   int        // of a list: what follows is left out
	budget    int        // distinct texts an origin and interval; of a list, distinct tags of each tag key
	masks     bool       // of a list: a tag's value that is longer than maxBytes becomes Blocked
	required  bool       // no key is without it once it is normal
	names     *nameRules // nil where valid UTF-8 within maxBytes is all that is asked
}

// nameRules are how the agent writes a label.
type nameRules struct {
	isName    func(text string) bool // reports whether the text can stay
	normalize func(text, lang string) string
}

// labels describes the labels. The limits are the agent's, and so are the spellings:
// srv_src is no slip. The budgets are those of the tracers, so that a service which moves
// its statistics here sees the same labels; but twice those of 64 and less, because what comes
// rarely passes at first sight in the first half alone, and all kinds of spans are more than
// half of eight.
var labels = [LabelCount]labelSpec{
	LabelService: {
		name: "service", agentName: "Service", maxBytes: MaxService, budget: 64, required: true,
		names: &nameRules{IsServiceName, ServiceName},
	},
	LabelOperation: {
		name: "operation", agentName: "Name", maxBytes: MaxOperation, budget: 128, required: true,
		names: &nameRules{isOperationName, operationName},
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
		maxTags: MaxAdditionalTags, masks: true, budget: 100,
	},
	// over it 0, which is none: no number says that it is blocked
	LabelHTTPStatus: {name: "http_status", budget: 64},
}

// maxMaskedTag is the longest tag whose value may yet be of MaxLabel, and one byte more,
// which shows that it is longer.
const maxMaskedTag = MaxLabel + len(":") + MaxLabel + 1

// String is the label's name in metrics and in --cardinality-limit.
func (l Label) String() string {
	if l == WholeKey {
		return "whole_key"
	}
	return labels[l].name
}

// AgentName is the name of the label's field in the agent's statistics.
func (l Label) AgentName() string { return labels[l].agentName }

// MaxBytes is how much of a text, or of a tag, is looked at: the rest changes nothing.
func (l Label) MaxBytes() int {
	if labels[l].masks {
		return maxMaskedTag
	}
	return labels[l].maxBytes
}

// Fits says whether a text, or a tag of a list, is no longer than is kept of it.
func (l Label) Fits(text string) bool { return len(text) <= labels[l].maxBytes }

// MaxTags is how many tags of a list are kept.
func (l Label) MaxTags() int { return labels[l].maxTags }

// Budget is the default of how many distinct values an origin may have in an interval.
func (l Label) Budget() int { return labels[l].budget }

// Text returns the field of a label that is a single text.
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

// Tags returns the field of a label that is a list of tags.
func (k *Key) Tags(l Label) *[]string {
	switch l {
	case LabelPeerTag:
		return &k.PeerTags
	case LabelAdditionalTag:
		return &k.AdditionalTags
	}
	panic("BUG: " + l.String() + " is not a list")
}

// At returns the field of a text, or the tag at a place of a list.
func (k *Key) At(l Label, place int) *string {
	if l < FirstList {
		return k.Text(l)
	}
	return &(*k.Tags(l))[place]
}

// ParseLabel finds a label by its name.
func ParseLabel(name string) (Label, bool) {
	for l := range WholeKey {
		if labels[l].name == name {
			return l, true
		}
	}
	return 0, false
}

// LabelNames are the names of all labels.
func LabelNames() []string {
	names := make([]string, LabelCount)
	for l := range labels {
		names[l] = labels[l].name
	}
	return names
}
