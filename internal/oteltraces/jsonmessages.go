package oteltraces

import "google.golang.org/protobuf/encoding/protowire"

// jsonKind is how a field's value stands in JSON, and in protobuf.
type jsonKind uint8

const (
	jsonText    jsonKind = iota
	jsonHex              // an id, as hexadecimal digits
	jsonBase64           // any other bytes
	jsonBool             //
	jsonVarint           // an integer, or an enumeration
	jsonFixed64          // an integer of 64 bits
	jsonFixed32          // an integer of 32 bits
	jsonDouble           //
	jsonMessage          // of a kind of its own
)

// jsonField is a field of a message. Whether it is a list shows in what stands there.
type jsonField struct {
	name   string
	number protowire.Number
	kind   jsonKind
	of     *jsonFields
}

// jsonFields are the fields of a message. They are few, so one is looked for from the first to
// the last.
type jsonFields []jsonField

// named is the field of a name, or nil.
func (fields jsonFields) named(name []byte) *jsonField {
	for i := range fields {
		if string(name) == fields[i].name {
			return &fields[i]
		}
	}
	return nil
}

// The messages of a request with traces. An attribute's value may hold more of its kind, so
// those are connected when all are there.
var (
	jsonValue     jsonFields
	jsonAttribute = jsonFields{{"key", 1, jsonText, nil}, {"value", 2, jsonMessage, &jsonValue}}
	jsonArray     = jsonFields{{"values", 1, jsonMessage, &jsonValue}}
	jsonList      = jsonFields{{"values", 1, jsonMessage, &jsonAttribute}}
	jsonEvent     = jsonFields{
		{"timeUnixNano", 1, jsonFixed64, nil},
		{"name", 2, jsonText, nil},
		{"attributes", 3, jsonMessage, &jsonAttribute},
		{"droppedAttributesCount", 4, jsonVarint, nil},
	}
	jsonLink = jsonFields{
		{"traceId", 1, jsonHex, nil},
		{"spanId", 2, jsonHex, nil},
		{"traceState", 3, jsonText, nil},
		{"attributes", 4, jsonMessage, &jsonAttribute},
		{"droppedAttributesCount", 5, jsonVarint, nil},
		{"flags", 6, jsonFixed32, nil},
	}
	jsonStatus = jsonFields{{"message", 2, jsonText, nil}, {"code", 3, jsonVarint, nil}}
	jsonSpan   = jsonFields{
		{"traceId", 1, jsonHex, nil},
		{"spanId", 2, jsonHex, nil},
		{"traceState", 3, jsonText, nil},
		{"parentSpanId", 4, jsonHex, nil},
		{"name", 5, jsonText, nil},
		{"kind", 6, jsonVarint, nil},
		{"startTimeUnixNano", 7, jsonFixed64, nil},
		{"endTimeUnixNano", 8, jsonFixed64, nil},
		{"attributes", 9, jsonMessage, &jsonAttribute},
		{"droppedAttributesCount", 10, jsonVarint, nil},
		{"events", 11, jsonMessage, &jsonEvent},
		{"droppedEventsCount", 12, jsonVarint, nil},
		{"links", 13, jsonMessage, &jsonLink},
		{"droppedLinksCount", 14, jsonVarint, nil},
		{"status", 15, jsonMessage, &jsonStatus},
		{"flags", 16, jsonFixed32, nil},
	}
	jsonScope = jsonFields{
		{"name", 1, jsonText, nil},
		{"version", 2, jsonText, nil},
		{"attributes", 3, jsonMessage, &jsonAttribute},
		{"droppedAttributesCount", 4, jsonVarint, nil},
	}
	jsonScopeSpans = jsonFields{
		{"scope", 1, jsonMessage, &jsonScope}, {"spans", 2, jsonMessage, &jsonSpan}, {"schemaUrl", 3, jsonText, nil},
	}
	jsonEntity = jsonFields{
		{"schemaUrl", 1, jsonText, nil},
		{"type", 2, jsonText, nil},
		{"idKeys", 3, jsonText, nil},
		{"descriptionKeys", 4, jsonText, nil},
	}
	jsonResource = jsonFields{
		{"attributes", 1, jsonMessage, &jsonAttribute},
		{"droppedAttributesCount", 2, jsonVarint, nil},
		{"entityRefs", 3, jsonMessage, &jsonEntity},
	}
	jsonResourceSpans = jsonFields{
		{"resource", 1, jsonMessage, &jsonResource}, {"scopeSpans", 2, jsonMessage, &jsonScopeSpans}, {"schemaUrl", 3, jsonText, nil},
	}
	jsonRequest = jsonFields{{"resourceSpans", 1, jsonMessage, &jsonResourceSpans}}
)

func init() {
	jsonValue = jsonFields{
		{"stringValue", 1, jsonText, nil},
		{"boolValue", 2, jsonBool, nil},
		{"intValue", 3, jsonVarint, nil},
		{"doubleValue", 4, jsonDouble, nil},
		{"arrayValue", 5, jsonMessage, &jsonArray},
		{"kvlistValue", 6, jsonMessage, &jsonList},
		{"bytesValue", 7, jsonBase64, nil},
	}
}
