// Package jsonscan steps through JSON in place, for decoders that know what they look for. It
// takes what RFC 8259 does and nothing else, and knows nothing of what the JSON says.
//
// # Bounds
//
// Nothing is allocated. What is stepped over may be nested as deep as it is: Skip takes a byte for
// each end that is open, of memory that its caller has.
//
// # Threading
//
// One goroutine at a time uses a Scanner.
package jsonscan
