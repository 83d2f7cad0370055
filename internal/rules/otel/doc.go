// Package otel counts the spans of an OTLP request by OpenTelemetry's semantic conventions.
//
// # Counting
//
// A Counter takes one body at a time. It has it decoded, makes the key of each span, and puts the
// span's snapshot into the batch of its origin. An origin is what a resource says of who sent it.
//
// # What a span is counted as
//
// Every span counts. Its name is the key's resource, and the operation is a name for its kind of
// work, http.server.request say, since a Datadog agent rewrites the names of operations and would
// make GET_users of "GET /users". Labels are read by the present names of attributes and by those
// of before 2023; those that are no label of their own are peer tags under the present name. A
// status that is OK, which nobody but an application sets, is an additional tag, see
// span.StatusOK.
//
// A span counts for as many as its tracestate says, up to wire.MaxWeight: see package tracestate.
// One that ends before it starts ends when it starts.
//
// # All or nothing
//
// A body is counted whole or not at all. Count fails for what is not written as OTLP, and for
// what would exceed a bound: the body is then left to whoever takes it. Texts are not checked to
// be UTF-8; in labels what is not is replaced, as everywhere.
//
// # Bounds
//
// CounterBytes is the most that a counter takes, by the length of bodies. A body
// of any number of resources is counted under rules.MaxBatches origins at most, see rules.Origins.
//
// # Threading
//
// One goroutine at a time uses a Counter. Its memory is used again for the next body, and nothing
// is allocated a span once it is warm. Label is called by the goroutine that publishes the batches, before the
// next body. A Policy never changes.
package otel
