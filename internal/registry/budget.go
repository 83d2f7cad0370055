package registry

// Field is a label that has a budget of distinct values an origin and interval.
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
