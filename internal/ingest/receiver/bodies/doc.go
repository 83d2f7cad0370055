// Package bodies reads request bodies into bounded memory, decompresses them, and remembers which bodies were
// counted.
//
// # Concurrency
//
// A Pool is safe for concurrent use. A Body, a Decompressor and a DedupCache are for one goroutine at a time.
//
// # Limits
//
// Pool: bytes of one body, of all bodies, and of one sender's. DedupCache: entries and their age.
package bodies
