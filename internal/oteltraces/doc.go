// Package oteltraces walks the body of an OTLP request with traces, an
// ExportTraceServiceRequest in protobuf, counts its spans, and says which of them go on.
//
// # Walking and counting
//
// A Counter takes one body at a time. It first walks the whole body in place: of each
// span it keeps the fields that a label needs, and of its attributes those that some label
// is made of. Nothing is decoded into objects; texts are places in the body. Every message
// in it is stepped through, down to the attributes of events, so a body that is counted is
// one that a decoder takes. Then it makes the spans' keys.
//
// What comes out are batches of snapshots, one for each origin, in the form of our own
// protocol (package wire). An origin is what a resource says of who sent it. Whoever
// publishes the batches treats them like those of a tracer that speaks our protocol.
//
// # What a span is counted as
//
// Every span counts. Its name is the key's resource, and the operation is a name for its
// kind of work, http.server.request say, since a Datadog agent rewrites the names of operations
// and would make GET_users of "GET /users". Labels are read by OpenTelemetry's semantic
// conventions, by their present names and by those of before 2023; those that are no label
// of their own are peer tags under the present name. A status that is OK, which nobody but
// an application sets, is an additional tag, see span.StatusOK.
//
// A span counts for as many as its tracestate says: with a threshold th of 56 bits it was
// kept with the probability 1-th/2^56, so it stands for the inverse of that, up to 2^32.
// A tracestate that is not written as W3C and OpenTelemetry have it says nothing.
//
// # The agent's reading
//
// Where statistics shall be those of the Datadog agent's own OTLP ingest, a Translator writes
// a request as that ingest turns it into traces: with the second version of its names, and of
// the tags those that a rule of statistics asks for. Package traces then counts that, nearly
// like any payload of the format v0.7 (FormatIngest there), so that there is one code that
// counts as the agent does. What was written of a span, but for its ids, times and error, is
// remembered by what it was made of.
// What its resource calls counted already (_dd.stats_computed), or its request where the resource
// says nothing, is in no payload. A host that the resource does not say is left to the agent.
//
// # Which spans go on
//
// A Keeping samples consistently, as OpenTelemetry's tracestate-probability-sampling says. A
// trace's randomness R is the rv of its tracestate, else the lowest 56 bits of its id, and
// a span goes on if R is at least the threshold T of the share that is wanted. So all pods
// decide alike, and so does a sampler behind us. Its tracestate then says th:T. A
// span with a higher threshold is one of fewer already: it goes on as it is.
//
// A trace of which the request has a span with an error, or a root that was slow, goes on
// whole, whatever its randomness, and its spans keep the threshold that they came with. That is
// honest because it is the probability with which they were kept: nothing was left out here
// of traces like these. It would not be to write th:T into those whose R is high enough as
// well, since errors would then count for more than there were. What the same trace has in
// another request, or in another pod, is judged by what is seen there; each span's threshold is
// true of that span, so sums over spans are right, but the trace may then go on in part.
//
// What goes on may say of each resource that its spans are counted (mark.go), by the attribute
// that the agent's ingest reads.
//
// A span whose tracestate cannot be read, or takes no threshold any more, goes on as it is:
// it would otherwise go on without saying for how many it stands.
//
// # All or nothing
//
// A body is counted whole or not at all. Count fails for what is not written as OTLP, and
// for what would exceed a bound: the body is then left to whoever takes it.
//
// Texts are not checked to be UTF-8; in labels what is not is replaced, as everywhere. A
// group, which OTLP has none of, an id of another length than its own, and messages
// nested deeper than MaxDepth are not read.
//
// # Bounds
//
// Spans, attributes that are kept, and the bytes of messages are bounded in proportion to
// the body and in all (CounterBytes); what is left of a sample, and what a Translator writes, is no
// longer than KeptBytes and TranslatedBytes say. Origins of one body are MaxBatches at most.
//
// # Threading
//
// One goroutine at a time uses a Counter, or a Translator. Its memory is used again for the
// next body, and nothing is allocated a span once it is warm. A Policy and a Keeping never
// change.
package oteltraces
