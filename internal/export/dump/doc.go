// Package dump keeps payloads that the agent refused, so that a person can see
// afterwards what was wrong with them.
//
// It owns a file format and a directory. A file is the exchange as it was on the wire: our
// request, then the agent's answer, both as HTTP/1.1, so that any tool that reads HTTP reads
// it, and the request can be put to an agent once more. Headers of the request that begin with
// Spanstatsd- say what was not on the wire: when, to whom, how many spans.
//
// A Dir has one user at a time, a delivery of the flush. It writes to disk in
// that goroutine: once a minute at most, and never on the way of a span.
//
// Bounds: one file per Pause, and MaxFiles files per process, of a payload each. Nothing removes them. Files
// are readable by their owner only: they hold names of services, resources and tags.
package dump
