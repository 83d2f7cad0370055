// Package bodies holds the bodies of requests in bounded memory while they are counted and forwarded,
// decompresses them, and remembers which were counted.
//
// # Concurrency
//
// A Pool is for any goroutine. A Body, a Decompressor and a DedupCache are for one goroutine at a time.
//
// # Limits
//
// Pool: the bytes of one body, of all, and of one sender. DedupCache: entries and their age.
package bodies
