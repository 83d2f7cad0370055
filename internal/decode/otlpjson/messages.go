package otlpjson

import "google.golang.org/protobuf/encoding/protowire"

// form is how a field's value stands in JSON, and in protobuf.
type form uint8

const (
	asText     form = iota
	asHex           // an id, as hexadecimal digits
	asBase64        // any other bytes
	asBool          //
	asVarint64      // an integer of 64 bits
	asVarint32      // an enumeration, or a count
	asFixed64       // an integer of 64 bits
	asFixed32       // an integer of 32 bits
	asDouble        //
	asMessage       // of a kind of its own
)

// field is a field of a message. Whether it is a list shows in what stands there.
type field struct {
	name   string
	number protowire.Number
	form   form
	of     *fields
}

// fields are the fields of a message. They are few, so one is looked for from the first to
// the last.
type fields []field

// named is the field of a name, or nil.
func (fields fields) named(name []byte) *field {
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
	valueFields     fields
	attributeFields = fields{{"key", 1, asText, nil}, {"value", 2, asMessage, &valueFields}}
	arrayFields     = fields{{"values", 1, asMessage, &valueFields}}
	listFields      = fields{{"values", 1, asMessage, &attributeFields}}
	eventFields     = fields{
		{"timeUnixNano", 1, asFixed64, nil},
		{"name", 2, asText, nil},
		{"attributes", 3, asMessage, &attributeFields},
		{"droppedAttributesCount", 4, asVarint32, nil},
	}
	linkFields = fields{
		{"traceId", 1, asHex, nil},
		{"spanId", 2, asHex, nil},
		{"traceState", 3, asText, nil},
		{"attributes", 4, asMessage, &attributeFields},
		{"droppedAttributesCount", 5, asVarint32, nil},
		{"flags", 6, asFixed32, nil},
	}
	statusFields = fields{{"message", 2, asText, nil}, {"code", 3, asVarint32, nil}}
	spanFields   = fields{
		{"traceId", 1, asHex, nil},
		{"spanId", 2, asHex, nil},
		{"traceState", 3, asText, nil},
		{"parentSpanId", 4, asHex, nil},
		{"name", 5, asText, nil},
		{"kind", 6, asVarint32, nil},
		{"startTimeUnixNano", 7, asFixed64, nil},
		{"endTimeUnixNano", 8, asFixed64, nil},
		{"attributes", 9, asMessage, &attributeFields},
		{"droppedAttributesCount", 10, asVarint32, nil},
		{"events", 11, asMessage, &eventFields},
		{"droppedEventsCount", 12, asVarint32, nil},
		{"links", 13, asMessage, &linkFields},
		{"droppedLinksCount", 14, asVarint32, nil},
		{"status", 15, asMessage, &statusFields},
		{"flags", 16, asFixed32, nil},
	}
	scopeFields = fields{
		{"name", 1, asText, nil},
		{"version", 2, asText, nil},
		{"attributes", 3, asMessage, &attributeFields},
		{"droppedAttributesCount", 4, asVarint32, nil},
	}
	scopeSpansFields = fields{
		{"scope", 1, asMessage, &scopeFields},
		{"spans", 2, asMessage, &spanFields},
		{"schemaUrl", 3, asText, nil},
	}
	entityFields = fields{
		{"schemaUrl", 1, asText, nil},
		{"type", 2, asText, nil},
		{"idKeys", 3, asText, nil},
		{"descriptionKeys", 4, asText, nil},
	}
	resourceFields = fields{
		{"attributes", 1, asMessage, &attributeFields},
		{"droppedAttributesCount", 2, asVarint32, nil},
		{"entityRefs", 3, asMessage, &entityFields},
	}
	resourceSpansFields = fields{
		{"resource", 1, asMessage, &resourceFields},
		{"scopeSpans", 2, asMessage, &scopeSpansFields},
		{"schemaUrl", 3, asText, nil},
	}
	requestFields = fields{{"resourceSpans", 1, asMessage, &resourceSpansFields}}
)

func init() {
	valueFields = fields{
		{"stringValue", 1, asText, nil},
		{"boolValue", 2, asBool, nil},
		{"intValue", 3, asVarint64, nil},
		{"doubleValue", 4, asDouble, nil},
		{"arrayValue", 5, asMessage, &arrayFields},
		{"kvlistValue", 6, asMessage, &listFields},
		{"bytesValue", 7, asBase64, nil},
	}
}
