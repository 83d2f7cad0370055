// Package conns accepts the connections of an http.Server within limits.
//
// Listeners are the Unix socket and the TCP address of a receiver. A Limiter bounds the connections in total
// and per process, and closes idle ones for new ones. A Conn bounds the lines of each request header and the
// time of a write. ConnState tells the limiter which connections are idle.
//
// # Concurrency
//
// A Limiter is safe for concurrent use; its lock also guards the state of its connections. A Conn is used
// like any net.Conn.
package conns
