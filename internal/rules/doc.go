// Package rules is what all rules have in common: a rule looks at a table of spans, says which
// of them count, makes the key of each that does, and puts its snapshot into the batch of its
// origin. The rules themselves stand in packages of their own: rules/datadog has those of the
// agent and of the tracers, rules/otel those of OpenTelemetry.
//
// Keys remembers keys by what they are made of, as it lies in a body: a span whose key is known
// costs a copy, a hash and a comparison, and nothing of its labels is checked, mended or encoded
// again. Origins numbers the origins of one body, and Batches has its snapshots by them. AppendTagValue writes the value of
// a tag as the agent does.
//
// # Bounds
//
// A body has MaxOrigins origins at most, and the common origin for the rest. It has no more bytes of keys than its limits allow. Keys
// are remembered in KeysBytes.
//
// # Threading
//
// One goroutine at a time uses Keys or Batches. Their memory is used again for the next body.
package rules
