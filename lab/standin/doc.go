// Package standin is a stand-in for the Datadog agent: it takes statistics over
// HTTP as the real one does, for the demo, the benchmarks and the tests.
//
// It is at least as strict as the real one. What that refuses is refused here with the same
// status: what internal/decode/payload can't read, a compressed body, a body over 25 MiB. What the
// real one takes without a word although it would show wrong numbers is taken too, and noted
// as a problem.
//
// It takes traces as well. It counts requests and bytes, those that are marked as
// counted apart from the others, and does not decode the spans.
//
// Threading: requests are served concurrently; one mutex guards the totals.
// Bounds: maxRows rows and one for all others, payload.MaxProblems problems, the size
// of a body. Payloads are not kept; Config.OnPayload sees each.
package standin
