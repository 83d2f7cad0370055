// Package conns accepts the connections of an http.Server within limits.
//
// Listeners are the Unix socket and the TCP address of a receiver. A Limiter limits the connections in total
// and per process, and evicts idle ones for new ones. A Conn limits the lines of each request header and the
// time of a write. The hook ConnState updates which connections are idle.
//
// # Concurrency
//
// A Limiter is safe for concurrent use; its lock also guards the state of its connections. A Conn is as safe for
// concurrent use as any net.Conn.
package conns
