// Package otlp decodes the body of an OTLP request with traces, an ExportTraceServiceRequest in
// protobuf, into a table of its spans.
//
// # Decoding
//
// Decode steps through the whole body once, in place. Of each span it keeps the fields that a
// rule needs and those attributes that have a label in the tables of names that it is given.
// Nothing is decoded into objects: texts are places in the body. It steps through every message,
// down to the attributes of events, so a body that is decoded here is one that every decoder
// takes.
//
// A Request is a table of spans with what only OTLP knows of them: a Place for each span, which
// is where it lies in the body, and the resources and scopes around them. So that a part of a
// request can be written anew, resources, scopes and spans know where they begin and end.
//
// # What is not read
//
// A body is read whole or not at all: an error says that it is left to whoever takes it. An id of
// another length than its own, and a resource or a scope in two parts are not read. Texts are not
// checked to be UTF-8. A group, which OTLP has none of, is stepped over, and so are messages nested
// deeper than MaxDepth: neither says anything to a rule, and no depth takes stack or memory.
//
// # Bounds
//
// Spans, attributes that are kept, resources and scopes are bounded in proportion to the body
// and in all; Bytes says what a Request takes.
//
// # Threading
//
// One goroutine at a time uses a Request. Its memory is used again for the next body, and
// nothing is allocated a span once it is warm.
package otlp
