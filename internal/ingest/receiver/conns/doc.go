// Package conns accepts connections of senders within limits.
//
// Listeners are the Unix socket and the TCP address of a server. A Limiter bounds the connections in
// total and per process, and closes idle ones for new ones. A Conn bounds the lines of each request
// header and the time that a write may take.
//
// # Concurrency
//
// A Limiter is for any goroutine; one lock guards it and the state of its connections. net/http uses
// a Conn as it uses any net.Conn.
package conns
