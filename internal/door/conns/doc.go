// Package conns accepts the connections of senders, and must be harmed by nobody who connects.
//
// A Listener admits connections as far as its Limiter has room, and finds out who is at the other
// end. Listeners are the socket and the address of a server. StopTCP ends accepting without losing
// who has connected already.
//
// # Threading
//
// A Limiter is for any goroutine, with one lock. A Conn is of one goroutine at a time, but for what
// the limiter's lock guards. A goroutine waits in each listener, and one begins where accepting is
// ended.
//
// # Bounds
//
// Connections, in all and of a process.
package conns
