// Package embedded is a Datadog agent within the program: it takes statistics
// over HTTP as the real one does, for the demo, the benchmarks and the tests.
//
// It is at least as strict as the real one. What that refuses is refused here
// with the same status: a nil where a string, array or map belongs, text for
// binary, a float for an integer, a negative count, a compressed body, a body
// over 25 MiB. What the real one takes without a word although it would show
// wrong numbers is taken too, and noted as a problem: see check.go.
//
// Traces it takes as well, from whoever stands before it: it counts requests and
// bytes, with the mark of those whose spans are counted already and without, and does
// not look at the spans.
//
// It shares no code with the encoder that it checks, so that a mistake made
// there cannot be made here in the same way: the decoder is written against
// the description of the format, not against a library.
//
// Threading: requests are served concurrently; one mutex guards the totals.
// Bounds: maxRows rows and one for all others, maxProblems problems, the size
// of a body. Payloads are not kept; Config.OnPayload sees each.
package embedded
