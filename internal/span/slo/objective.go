package slo

import (
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/mask"
)

// MaxObjectives is the maximum number of objectives.
const MaxObjectives = 32

// Objective is a service level objective: the ratio of good spans to all spans that it selects.
type Objective struct {
	Name      string
	Service   string        // service of the spans as the operator wrote it; "" for any service
	Labels    []Label       // labels that a span must have, without those about its kind
	Kinds     []string      // kinds of spans; empty for all kinds
	Threshold time.Duration // maximum duration of a good span; 0 if only errors count
	Target    float64       // percentage of good spans, more than 0 and less than 100
	Days      int           // length of the rolling window
}

// Label is the name of a label, and the value that a span must have.
type Label struct{ Name, Value string }

// Names of labels that are not attributes.
const (
	labelService   = "service"
	labelSpan      = "span" // the name under which a span is counted
	labelOperation = "operation"
	labelEnv       = "env"
	labelKind      = "kind"
	labelMethod    = "http.request.method"
	labelRoute     = "http.route"
)

// ErrorBudget returns the permitted ratio of spans that are not good, such as 0.001 for a target of 99.9 %.
func (o *Objective) ErrorBudget() float64 {
	const digits = 1e9 // rounds away the error of the subtraction
	return math.Round((100-o.Target)/100*digits) / digits
}

// matches reports whether the objective counts spans with this key and origin. The key must be normalized.
func (o *Objective) matches(k *span.Key, origin *span.Origin) bool {
	hasKind := len(o.Kinds) == 0 || slices.Contains(o.Kinds, k.Kind)
	if !hasKind {
		return false
	}
	for i := range o.Labels {
		if !o.Labels[i].matches(k, origin) {
			return false
		}
	}
	return true
}

// matches reports whether spans with this key and origin have the label.
func (l *Label) matches(k *span.Key, origin *span.Origin) bool {
	switch l.Name {
	case labelService:
		return k.Service == l.Value
	case labelSpan:
		return k.Resource == l.Value || l.isMaskOf(k.Resource)
	case labelOperation:
		return k.Operation == l.Value
	case labelEnv:
		return origin.Env == l.Value
	case labelMethod:
		return k.HTTPMethod == l.Value
	case labelRoute:
		return k.HTTPEndpoint == l.Value
	}
	return slices.ContainsFunc(k.PeerTags, l.isTag) || slices.ContainsFunc(k.AdditionalTags, l.isTag)
}

// isMaskOf reports whether the value is the mask of a span name, as GET /users/{id} is the mask of GET /users/17.
func (l *Label) isMaskOf(name string) bool {
	if !strings.Contains(l.Value, "{") {
		return false // no mask, which saves masking the name
	}
	masked, isMasked := mask.Append(nil, name)
	return isMasked && string(masked) == l.Value
}

// isTag reports whether tag, such as "region:eu", has the name and the value of the label.
func (l *Label) isTag(tag string) bool {
	name, value, _ := strings.Cut(tag, ":")
	return name == l.Name && value == l.Value
}

// isAttribute reports whether the label is an attribute that a span only has as a tag of its key.
func (l *Label) isAttribute() bool {
	return !slices.Contains(otherLabels, l.Name)
}

// otherLabels contains the names of all labels that are not tags of a key, except for the kind.
var otherLabels = []string{labelService, labelSpan, labelOperation, labelEnv, labelMethod, labelRoute}

// isGood reports whether a span with the given duration in nanoseconds is good.
func (o *Objective) isGood(duration uint64, flags span.Flags) bool {
	if flags&span.Error != 0 {
		return false
	}
	hasThreshold := o.Threshold > 0
	return !hasThreshold || duration <= uint64(o.Threshold)
}

// List is a list of objectives. A nil List has none.
type List struct{ objectives []Objective }

// All returns the objectives. The caller must not change them.
func (l *List) All() []Objective {
	if l == nil {
		return nil
	}
	return l.objectives
}

// Len returns the number of objectives.
func (l *List) Len() int { return len(l.All()) }

// Names returns the names of the objectives in their order.
func (l *List) Names() (names []string) {
	for _, o := range l.All() {
		names = append(names, o.Name)
	}
	return names
}

// AttributeNames returns the names of all span attributes that objectives refer to, without duplicates. Receivers must
// store these attributes in the keys of spans, or else no span matches their objectives.
func (l *List) AttributeNames() (names []string) {
	for _, o := range l.All() {
		for _, label := range o.Labels {
			if label.isAttribute() && !slices.Contains(names, label.Name) {
				names = append(names, label.Name)
			}
		}
	}
	return names
}

// Set is a set of objectives: bit i stands for the objective with index i in a List.
type Set uint32

// Match returns the objectives that count spans with this key and origin. The key must be normalized. Match must be
// called before cardinality budgets replace labels of the key.
func (l *List) Match(k *span.Key, origin *span.Origin) (matching Set) {
	for i := range l.All() {
		if l.objectives[i].matches(k, origin) {
			matching |= 1 << i
		}
	}
	return matching
}

// Count is the number of spans that an objective has counted. A sampled span counts with its weight, as elsewhere.
type Count struct{ Events, Good float64 }

// Counts contains a Count for each objective of a List.
type Counts []Count

// AddSpan counts a span for the objectives in matching. duration is in nanoseconds.
func (c Counts) AddSpan(l *List, matching Set, duration uint64, flags span.Flags, weight float64) {
	for ; matching != 0; matching &= matching - 1 { // removes the lowest objective of the set
		i := bits.TrailingZeros32(uint32(matching))
		c[i].Events += weight
		if l.objectives[i].isGood(duration, flags) {
			c[i].Good += weight
		}
	}
}

// AddGroup counts spans that a tracer has aggregated itself, for the objectives in matching. errors is the number of these
// spans that failed. AddGroup skips objectives with a threshold, because the duration of each span is unknown.
// isComplete is false if it has skipped an objective.
func (c Counts) AddGroup(l *List, matching Set, spans, errors float64) (isComplete bool) {
	isComplete = true
	for ; matching != 0; matching &= matching - 1 { // removes the lowest objective of the set
		i := bits.TrailingZeros32(uint32(matching))
		if l.objectives[i].Threshold > 0 {
			isComplete = false
			continue
		}
		c[i].Events += spans
		c[i].Good += spans - errors
	}
	return isComplete
}

// Add adds counts of the same objectives.
func (c Counts) Add(other Counts) {
	for i := range other {
		c[i].Events += other[i].Events
		c[i].Good += other[i].Good
	}
}
