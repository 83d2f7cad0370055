// Package receiver implements the HTTP server of the receivers: the APIs that traces come in by. It listens,
// limits connections, reads bodies into bounded memory, recognizes retries, publishes what was counted,
// forwards requests and drains at shutdown. A receiver is a package below this one. It supplies a Setup, with a
// function that classifies requests, and an Exchange per request, which counts the body, rewrites the
// request and translates the upstream's response.
//
// # Path of a request
//
//	net/http -> Setup.Classify -> read the body -> Exchange.Count -> BufferedRequest.Publish
//	         -> Exchange.Outbound -> http.Transport -> Exchange.Translate -> Response
//
// It is the same for all receivers, HTTP versions and encodings. A request is counted before it is
// forwarded, because its spans have happened whatever the upstream says. It is counted whole or not at
// all, because only a whole request can be marked as counted. Requests that Classify leaves alone are
// streamed by Setup.Stream.
//
// # Retries
//
// A body that was counted is not counted again for ten minutes, or until 4096 others were counted (see
// bodies.DedupCache). Of equal bodies at the same time one is counted.
//
// # Concurrency
//
// The goroutine of net/http's handler does all of the work of a request. Counting waits neither for a
// ring nor for the network. Publishers are guarded by one lock, which is held while a body is published.
//
// # Limits
//
// Connections in total and per process; bytes and lines of a header; bytes of one body, of all and of
// one sender, also of decompressed ones; the time for reading a body; requests that wait for the upstream, and connections
// to it; publishers; remembered bodies. Config.Memory adds them up.
package receiver
