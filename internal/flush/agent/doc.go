// Package agent is the exporter for the Datadog agent: what it is sent, how it is asked
// to take it, and what it says that it wants.
//
// A payload is one POST to /v0.6/stats with the groups of one origin, in msgpack, its
// sketches in protobuf. A goroutine, discovery, reads /info and publishes the agent's
// Features. It looks again when the state on an answer changes, when nobody answers,
// and while the agent wants nothing; an agent that it finds back ends the sender's
// pause.
//
// The rule on sending again: what certainly did not arrive is tried again, and
// nothing else. A body is sent when the agent asks for it, so one that hangs or
// goes before it reads has nothing; manner says what becomes of those that never ask.
// A request of which any byte was refused did
// not arrive either, because the agent counts only whole bodies. A request that
// was written whole and never answered may have been counted, and the agent does
// not recognise a second copy, so its outcome is unknown.
//
// Threads: Encode has one caller at a time, the goroutine that seals; deliveries run
// beside each other and share only what is atomic, and the lock of what is kept of
// refused payloads. Features are read by anybody.
//
// Bounds: one request has the time that flush gives it, a reading of /info infoTimeout;
// 1 KiB of a refusal, 1 MiB of /info and 64 KiB of headers are read; package dump bounds
// what is kept of refused payloads. What waits, and how much is under way, flush bounds.
package agent
