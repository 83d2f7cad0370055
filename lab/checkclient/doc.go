// Package checkclient is a daemon that counts nothing: it tells the author of a tracer
// what the daemon would understand of it, message by message, and at the end what it cost.
//
// It owns what is told. What it tells of is read by the daemon's own code: package ingest
// cuts frames and says why a connection ends, wire reads messages and keys, span
// normalises labels. So what is well here is well there, and who is told bye here is told
// so there, in the same words. Only a flush is answered at once, for nothing is counted.
//
// # Threading
//
// Serve accepts; each connection is a session with a goroutine of its own, and only the
// printer, behind a lock, is shared. The clock is the Config's.
//
// # Bounds
//
// Sixteen connections at a time; who comes beyond them waits in the backlog. A session
// keeps the hashes of some keys and of distinct labels, and the notes that it has made,
// each up to a constant, and of a batch it shows the first few. Messages beyond
// Config.PerSecond are not printed but counted; what is malformed and the end of a
// connection always are. Texts are cut, and what could act on a terminal is escaped.
package checkclient
