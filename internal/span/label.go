package span

// Label numbers a label of a key, in the order of the wire: first those that are one
// text, then those that are a list of tags.
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

	// WholeKey is not a label. It names the loss of all of them at once.
	WholeKey

	FirstList  = LabelPeerTag  // the labels before it are texts
	LabelCount = int(WholeKey) // of both kinds
)

// labelSpec is all that is known of a label, in one place. The test of this table names
// the places that must be edited besides for a new label.
type labelSpec struct {
	name      string                         // in metrics and in --cardinality-limit
	maxBytes  int                            // of the text or of one tag: what is longer is cut
	maxTags   int                            // of a list: what follows is left out
	budget    int                            // distinct texts an origin and interval; of a list, distinct tags of each tag key
	text      func(*Key) *string             // where it lies in a key, nil for a list
	tags      func(*Key) *[]string           // where it lies in a key, nil for a text
	normalize func(text, lang string) string // nil where valid UTF-8 within maxBytes is all that is asked
}

// labels describes the labels. The limits are the agent's, the budgets those of the
// tracers, so that a service which moves its statistics here sees the same labels.
var labels = [LabelCount]labelSpec{
	LabelService: {
		name: "service", maxBytes: MaxService, budget: 32, normalize: ServiceName,
		text: func(k *Key) *string { return &k.Service },
	},
	LabelOperation: {
		name: "operation", maxBytes: MaxOperation, budget: 64, normalize: operationName,
		text: func(k *Key) *string { return &k.Operation },
	},
	LabelResource: {
		name: "resource", maxBytes: MaxResource, budget: 1024,
		text: func(k *Key) *string { return &k.Resource },
	},
	LabelType: {
		name: "type", maxBytes: MaxType, budget: 16,
		text: func(k *Key) *string { return &k.Type },
	},
	LabelKind: {
		name: "span_kind", maxBytes: MaxLabel, budget: 8,
		text: func(k *Key) *string { return &k.Kind },
	},
	LabelHTTPMethod: {
		name: "http_method", maxBytes: MaxLabel, budget: 16,
		text: func(k *Key) *string { return &k.HTTPMethod },
	},
	LabelHTTPEndpoint: {
		name: "http_endpoint", maxBytes: MaxLabel, budget: 512,
		text: func(k *Key) *string { return &k.HTTPEndpoint },
	},
	LabelGRPCStatus: {
		name: "grpc_status", maxBytes: MaxLabel, budget: 24,
		text: func(k *Key) *string { return &k.GRPCStatus },
	},
	LabelServiceSource: {
		name: "service_source", maxBytes: MaxLabel, budget: 16,
		text: func(k *Key) *string { return &k.ServiceSource },
	},
	LabelPeerTag: {
		name: "peer_tag", maxBytes: MaxLabel, maxTags: MaxPeerTags, budget: 512,
		tags: func(k *Key) *[]string { return &k.PeerTags },
	},
	LabelAdditionalTag: {
		name: "additional_tag", maxBytes: MaxLabel, maxTags: MaxAdditionalTags, budget: 100,
		tags: func(k *Key) *[]string { return &k.AdditionalTags },
	},
}

// String is the label's name in metrics and in --cardinality-limit.
func (l Label) String() string {
	if l == WholeKey {
		return "whole_key"
	}
	return labels[l].name
}

// MaxBytes is the longest text, or tag, that is kept whole.
func (l Label) MaxBytes() int { return labels[l].maxBytes }

// Budget is the default of how many distinct values an origin may have in an interval.
func (l Label) Budget() int { return labels[l].budget }

// Text is where a label lies in the key. It must not be a list.
func (k *Key) Text(l Label) *string { return labels[l].text(k) }

// Tags is where a list of tags lies in the key.
func (k *Key) Tags(l Label) *[]string { return labels[l].tags(k) }

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
