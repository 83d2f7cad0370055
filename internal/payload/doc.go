// Package payload reads the statistics that go to a Datadog agent as the agent itself would:
// `spanstatsd dump` prints them with it, and the stand-in agent of lab/ and the tests of the
// encoder hold the encoder to it. A Walk reads those that tracers write, in place and a group
// at a time, for who adds them up: with it nothing is lost, and nothing is kept but tags, of
// which Walk.MaxTags says how many there may be.
//
// It is at least as strict as the real one. A nil where a string, array or map belongs, text
// for binary, a float for an integer and a negative count are refused. What the real one takes
// without a word although it would show wrong numbers is taken too, and noted as a problem:
// see check.go.
//
// It shares no code with the encoder, so that a mistake made there cannot be made here in the
// same way: payloads are read with a msgpack library and sketches with the agent's own. The
// program's internal/msgpack is not used.
//
// It keeps no state, so any goroutine may call it. An array or a map has at most maxElements,
// what is skipped is nested maxDepth deep at most, and a sketch's bins are those that a
// duration has, so that a payload of a few bytes takes no more memory than the agent's
// largest.
package payload
