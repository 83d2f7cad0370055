// Package receiver implements the HTTP server of all receivers. It listens, limits connections, reads bodies
// into bounded memory, recognizes retries, publishes the counted spans, forwards requests, and drains
// connections at shutdown. The packages datadog, otlp and zipkin implement one API each. Each of them supplies a
// Setup, whose Classify function reads the header of a request, and an Exchange per request, which counts the body,
// rewrites the request, and translates the upstream's response.
//
// # Path of a request
//
//	net/http -> Setup.Classify -> read the body -> Exchange.Count -> BufferedRequest.Publish
//	         -> Exchange.Outbound -> http.Transport -> Exchange.Translate -> Response
//
// The path is the same for all receivers, HTTP versions and encodings. A request is counted before it is
// forwarded, because its spans have happened whether or not the upstream accepts them. Either all spans of a request
// are counted, or none, because only a whole request can be marked as counted. Setup.Stream serves the requests for
// which Classify returns neither an exchange nor a response.
//
// # Retries
//
// A body that was counted is not counted again within ten minutes, or until 4096 other bodies were counted
// (see bodies.DedupCache). If equal bodies arrive at the same time, one is counted.
//
// # Concurrency
//
// net/http's handler goroutine serves a request from start to end. Counting waits neither for a ring nor for the
// network. One lock guards the publishers; it is held while a body is published.
//
// # Limits
//
// Connections in total and per process; bytes and lines of a header; bytes of one body, of all bodies and of
// one sender's, including decompressed ones; the time for reading a body; requests waiting for the upstream, and
// connections to the upstream; publishers; remembered bodies. Config.Memory returns the sum of the memory.
package receiver
