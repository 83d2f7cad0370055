// Package destination is where requests of a door go on to, by its URL: a collector, or another server
// that takes what the door takes. It finds out how it is spoken to, carries requests by gRPC and TLS,
// and says to an operator what to do where it does not answer.
//
// # Bounds and threading
//
// The connections to one and the bytes of an answer are bounded; Memory adds them up. A URL never
// changes once it is read.
package destination
