// Package agent is the push exporter for the Datadog agent.
//
// A payload is one POST to /v0.6/stats with the groups of one origin in msgpack, their sketches in
// protobuf. A goroutine, discovery, reads /info and publishes the agent's Features. It reads it again when
// the state in a response changes, when a payload is not answered, and while the agent wants no statistics;
// when the agent answers again, the pause before the next attempt ends. An auto-discovered agent is found in the
// same way, without a warning, and is a destination from then on.
//
// Package post sends payloads, and reports which ones certainly did not arrive. The table answers defines
// which status codes are retried.
//
// Concurrency: Encode has one caller at a time, the sealing goroutine. Deliveries run at the same time and
// share atomics, and the lock of refused payloads. Any goroutine can read Features.
//
// Limits: reading /info has infoTimeout and maxInfoBytes. Package post limits other responses, package dump
// the files of refused payloads, and package export queues and deliveries.
package agent
