// Package otel counts the spans of an OTLP request by OpenTelemetry's semantic conventions.
//
// # Counting
//
// A Counter processes one body at a time. It decodes the body, makes the fingerprint of each span,
// and adds the span's snapshot to the batch of its origin. The origin is derived from the span's
// resource.
//
// # Keys
//
// Every span counts. The name of the span becomes the key's resource. The operation describes the
// kind of work, such as http.server.request, because a Datadog agent normalizes operations and
// would change "GET /users" to GET_users. Labels are read from the current names of attributes and
// from those before 2023. Attributes that are not labels of their own become peer tags under their
// current names. The status OK, which only an application sets, becomes an additional tag, see
// span.StatusOK.
//
// A span has the weight that its tracestate specifies, up to wire.MaxWeight, see package
// tracestate. A span that ends before its start ends at its start.
//
// # All or nothing
//
// A body is counted completely or not at all. Count fails if the body is not valid OTLP or exceeds
// a limit. The caller then forwards or refuses the body. Texts are not validated as UTF-8; labels
// replace invalid bytes, as everywhere.
//
// # Limits
//
// CounterBytes returns the maximum memory of a counter for a given length of bodies. A body with
// any number of resources is counted under at most rules.MaxBatches origins, see rules.Origins.
//
// # Concurrency
//
// One goroutine at a time may use a Counter. The next body reuses its memory, so that counting a
// span allocates nothing once the counter is warm. Label is called by the goroutine that publishes
// the batches, before the next body. A Policy is immutable.
package otel
