// Package agent is the exporter for the Datadog agent: what it is sent, how it is asked
// to take it, and what it says that it wants.
//
// A payload is one POST to /v0.6/stats with the groups of one origin, in msgpack, its
// sketches in protobuf. A goroutine, discovery, reads /info and publishes the agent's
// Features. It looks again when the state on an answer changes, when nobody answers,
// and while the agent wants nothing; an agent that it finds back ends the sender's
// pause. An agent that nobody named it looks for in the same way, without a warning, and from the
// moment that it finds one it is a destination.
//
// How a payload gets there, and what certainly did not arrive, package post knows; answers
// is the table of what is tried again.
//
// Threads: Encode has one caller at a time, the goroutine that seals; deliveries run
// beside each other and share only what is atomic, and the lock of what is kept of
// refused payloads. Features are read by anybody.
//
// Bounds: a reading of /info has infoTimeout, and reads maxInfoBytes; package post bounds what
// else is read of an answer, package dump what is kept of refused payloads. What waits, and
// how much is under way, flush bounds.
package agent
