// Package checkclient implements a daemon that counts nothing. It tells the author of a tracer
// how the daemon would interpret each message, and at the end of a connection what its messages
// cost.
//
// It owns the report only. Messages are interpreted by the daemon's own packages: ingest splits
// frames and determines why a connection ends, wire parses messages and keys, and span normalizes
// labels. So this package and the daemon accept the same messages, and reject others with the
// same bye reason and text. The one difference: a flush is acknowledged immediately, because
// nothing is counted.
//
// # Concurrency
//
// Serve accepts connections. Each connection is a session with its own goroutine. Sessions share
// only the printer, which has a lock. The clock is the one of Config.
//
// # Limits
//
// Sixteen connections are served at a time; further ones wait in the listen backlog. A session
// keeps the hashes of some keys, of distinct labels and of its notes, each up to a constant
// number. For each batch it prints only the first few spans. Messages over Config.PerSecond are
// counted instead of printed; malformed messages and the end of a connection are always printed.
// Texts are truncated, and characters that could control a terminal are escaped.
package checkclient
