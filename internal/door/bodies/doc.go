// Package bodies holds the bodies of requests while they are counted and handed on, and
// remembers those that were counted, so that what is sent again is counted once.
//
// It owns a Pool, which is the memory that bodies are read into, all of them together; and
// Counted, which remembers a body from when it is counted until its sender is known to have the
// answer. A Receipt finds that out, one for each connection of HTTP/1.1. An Inflater undoes the
// compression of a message, into a Body.
//
// # Threading
//
// A Pool, Counted and a Receipt are for any goroutine: each has one lock. That of Counted is held
// while a body is published; a Receipt holds its own while it asks Counted. A Body, and an
// Inflater, is of one goroutine at a time. No goroutine begins here.
//
// # Bounds
//
// The bytes of one body and of all; the bodies that are remembered.
package bodies
