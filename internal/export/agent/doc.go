// Package agent is the push exporter for the Datadog agent.
//
// A payload is one POST to /v0.6/stats with the groups of one origin in msgpack, their sketches in
// protobuf. A goroutine, discovery, reads /info and publishes the agent's Features. It reads it again when
// the state in a response changes, when a payload is not answered, and while the agent wants no statistics;
// if an agent answers again, the pause before the next try ends. An auto-discovered agent is found in the
// same way, without a warning, and is a destination from then on.
//
// Package post sends payloads and knows what certainly did not arrive; answers is the table of what is
// retried.
//
// Concurrency: Encode has one caller at a time, the sealing goroutine. Deliveries run at the same time and
// share atomics, and the lock of refused payloads. Any goroutine can read Features.
//
// Limits: reading /info has infoTimeout and maxInfoBytes; package post limits what is read of other
// responses, package dump what is kept of refused payloads, and package export queues and deliveries.
package agent
