// Package sampling decides which spans of a body that was counted go on, and writes what is left
// of it.
//
// # OTLP: which spans go on
//
// A Keeping samples consistently, as OpenTelemetry's tracestate-probability-sampling says. A
// trace's randomness R is the rv of its tracestate, else the lowest 56 bits of its id, and a span
// goes on if R is at least the threshold T of the share that is wanted. So all pods decide alike,
// and so does a sampler behind us. Its tracestate then says th:T. A span with a higher threshold
// is one of fewer already: it goes on as it is.
//
// A trace of which the request has a span with an error, or a root that was slow, goes on whole,
// whatever its randomness, and its spans keep the threshold that they came with. That is honest
// because it is the probability with which they were kept: nothing was left out here of traces
// like these. It would not be to write th:T into those whose R is high enough as well, since
// errors would then count for more than there were. What the same trace has in another request,
// or in another pod, is judged by what is seen there; each span's threshold is true of that span,
// so sums over spans are right, but the trace may then go on in part.
//
// A span whose tracestate cannot be read is judged like one that has none, and goes on with one that
// says for how many it stands; of one that is full what stands last makes room for that.
//
// What goes on may say of each resource that its spans are counted (mark.go), by the attribute
// that the agent's ingest reads.
//
// # Bounds
//
// What is left of a body is no longer than LeftBytes says. Bytes is what a Sample takes.
//
// # Threading
//
// One goroutine at a time uses a Sample. Its memory is used again for the next body, and nothing
// is allocated a span once it is warm. A Keeping never changes.
package sampling
