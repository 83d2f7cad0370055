// Package otlpjson turns a request with traces that is written as OTLP/JSON into the same
// request in protobuf, which package otlp decodes. So there is one decoder of spans.
//
// # Reading and writing
//
// FromJSON steps through the body once, and writes each field as soon as it has read it. What
// a name stands for says a table of messages (messages.go). It reads what the specification
// has: names in lowerCamelCase, ids in hexadecimal, integers of 64 bits as text or as numbers,
// enumerations as numbers. It skips a name that it does not know.
//
// Everything else of a body must be JSON as RFC 8259 has it, and no name may be repeated into
// something that protobuf has no list for. What is wrong in one place fails the whole body.
//
// # Bounds
//
// What is nested deeper than MaxDepth is stepped over, as deep as it is, and written as an empty list.
// What is written of a body in UTF-8 is no longer than ProtobufBytes says, and nothing is allocated
// where there is room for it.
//
// # Threading
//
// FromJSON has no state: any goroutine may call it.
package otlpjson
