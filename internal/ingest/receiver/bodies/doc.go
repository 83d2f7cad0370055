// Package bodies reads request bodies into bounded memory, decompresses them, and recognizes bodies that were already
// counted.
//
// # Concurrency
//
// A Pool is safe for concurrent use. Body, Decompressor and DedupCache are not.
//
// # Limits
//
// Pool: bytes of one body, of all bodies, and of one sender's. DedupCache: entries and their age.
package bodies
