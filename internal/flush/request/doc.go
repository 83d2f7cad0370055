// Package request holds what every exporter that speaks HTTP needs to know of one
// request: whether all of it can have arrived, and what the answer asks for.
//
// It owns the body of a request and the connection below it, both watched. net/http
// calls a request written when its last bytes are in a buffer of its own, and also when
// it was never asked for the body; a payload that is sent a second time is counted a
// second time. So a body notes that it was read, a connection that a write of its
// failed, and only both together say that a request arrived whole.
//
// A Body is of one request and one goroutine; what net/http's own goroutines tell it is
// atomic. What it found out may be asked once RoundTrip has returned: net/http lets go
// of a failed request only after its writing goroutine has ended.
//
// Bounds: maxSaid of an answer's body is read, and no answer has its sender wait for
// longer than MaxRetryAfter.
package request
