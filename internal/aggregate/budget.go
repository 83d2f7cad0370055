package aggregate

import (
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Field is a label that has a budget of distinct values an origin and cycle.
type Field uint8

const (
	FieldService Field = iota
	FieldOperation
	FieldResource
	FieldType
	FieldSpanKind
	FieldHTTPMethod
	FieldHTTPEndpoint
	FieldGRPCStatus
	FieldServiceSource
	FieldPeerTag       // each tag key has this budget
	FieldAdditionalTag // each tag key has this budget
	// FieldWholeKey is not a label: it names the collapse of a key that found
	// the whole table full.
	FieldWholeKey

	Fields = int(FieldWholeKey) + 1
)

var fieldNames = [Fields]string{
	"service", "operation", "resource", "type", "span_kind", "http_method", "http_endpoint",
	"grpc_status", "service_source", "peer_tag", "additional_tag", "whole_key",
}

// String is the field's name in metrics and in --cardinality-limit.
func (f Field) String() string { return fieldNames[f] }

// ParseField finds a budgeted label by its name.
func ParseField(name string) (Field, bool) {
	for f := FieldService; f < FieldWholeKey; f++ {
		if fieldNames[f] == name {
			return f, true
		}
	}
	return 0, false
}

// FieldNames are the names of the budgeted labels.
func FieldNames() []string { return fieldNames[:FieldWholeKey] }

// Budgets is the number of distinct values that each field may have.
type Budgets [FieldWholeKey]int

// DefaultBudgets are those of the tracers, so that a service which moves its
// statistics here sees the same labels.
func DefaultBudgets() Budgets {
	return Budgets{
		FieldService: 32, FieldOperation: 64, FieldResource: 1024, FieldType: 16,
		FieldSpanKind: 8, FieldHTTPMethod: 16, FieldHTTPEndpoint: 512, FieldGRPCStatus: 24,
		FieldServiceSource: 16, FieldPeerTag: 512, FieldAdditionalTag: 100,
	}
}

// Collapsed is the set of fields that one key lost to its budgets.
type Collapsed uint16

// Has reports whether the field is in the set.
func (c Collapsed) Has(f Field) bool { return c&(1<<f) != 0 }

// maxTagKeys bounds the distinct tag keys that one origin can have budgets for.
// Tags beyond it collapse whole, key and all, since their keys are then what is
// unbounded.
const maxTagKeys = 64

// budget is what one origin has used of its budgets in one cycle.
type budget struct {
	limits *Budgets
	values [FieldPeerTag]map[string]struct{}
	tags   [2]map[string]map[string]struct{} // peer and additional: by tag key, its values
}

func newBudget(limits *Budgets) *budget {
	b := &budget{limits: limits}
	for f := range b.values {
		b.values[f] = map[string]struct{}{}
	}
	b.tags[0], b.tags[1] = map[string]map[string]struct{}{}, map[string]map[string]struct{}{}
	return b
}

func (b *budget) reset() {
	for f := range b.values {
		clear(b.values[f])
	}
	clear(b.tags[0])
	clear(b.tags[1])
}

// labels are the key's budgeted labels, by field.
func labels(k *span.Key) [FieldPeerTag]*string {
	return [FieldPeerTag]*string{
		FieldService: &k.Service, FieldOperation: &k.Operation, FieldResource: &k.Resource,
		FieldType: &k.Type, FieldSpanKind: &k.Kind, FieldHTTPMethod: &k.HTTPMethod,
		FieldHTTPEndpoint: &k.HTTPEndpoint, FieldGRPCStatus: &k.GRPCStatus,
		FieldServiceSource: &k.ServiceSource,
	}
}

// charge collapses every label of the key that is over its budget, before the
// key is looked up, so that all such spans meet in one aggregate. A value that
// was admitted earlier in the cycle keeps its name. Nothing is remembered yet: a
// key that then finds the table full must cost no memory and no budget.
func (b *budget) charge(k *span.Key) (collapsed Collapsed) {
	for f, label := range labels(k) {
		if *label != "" && !hasPlace(b.values[f], *label, b.limits[f]) {
			*label = span.Blocked
			collapsed |= 1 << f
		}
	}
	collapsed |= b.chargeTags(FieldPeerTag, b.tags[0], &k.PeerTags)
	return collapsed | b.chargeTags(FieldAdditionalTag, b.tags[1], &k.AdditionalTags)
}

func (b *budget) chargeTags(f Field, used map[string]map[string]struct{}, tags *[]string) (collapsed Collapsed) {
	for i, tag := range *tags {
		name, value, _ := strings.Cut(tag, ":")
		values, known := used[name]
		known = known || len(used) < maxTagKeys
		if known && hasPlace(values, value, b.limits[f]) {
			continue
		}
		if collapsed == 0 {
			// The caller's key is shared with its connection: write into a copy.
			*tags = append([]string(nil), *tags...)
		}
		collapsed = 1 << f
		(*tags)[i] = span.Blocked
		if known {
			(*tags)[i] = name + ":" + span.Blocked
		}
	}
	if collapsed != 0 {
		// What has become alike stands once, or the number of such tags would tell
		// keys apart that their names do not.
		slices.Sort(*tags)
		*tags = slices.Compact(*tags)
	}
	return collapsed
}

// keep remembers the values of a charged key that has got its number.
func (b *budget) keep(k *span.Key) {
	for f, label := range labels(k) {
		if *label != "" && hasPlace(b.values[f], *label, b.limits[f]) {
			b.values[f][*label] = struct{}{}
		}
	}
	b.keepTags(FieldPeerTag, b.tags[0], k.PeerTags)
	b.keepTags(FieldAdditionalTag, b.tags[1], k.AdditionalTags)
}

func (b *budget) keepTags(f Field, used map[string]map[string]struct{}, tags []string) {
	for _, tag := range tags {
		name, value, _ := strings.Cut(tag, ":")
		if used[name] == nil && len(used) < maxTagKeys {
			used[name] = map[string]struct{}{}
		}
		// One key may have two values of one tag, of which only one has a place.
		if values := used[name]; values != nil && hasPlace(values, value, b.limits[f]) {
			values[value] = struct{}{}
		}
	}
}

// hasPlace reports whether value is among the others, or may be.
func hasPlace(values map[string]struct{}, value string, limit int) bool {
	_, known := values[value]
	return known || len(values) < limit
}
