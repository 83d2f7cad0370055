// Package ring records what really concurrent producers and a consumer saw of
// the ring, and has porcupine look for an order of these operations, one after
// another, in which a plain list would have answered the same. If there is
// none, the ring is not what it says.
//
// It is a module of its own, so that porcupine is no dependency of the daemon.
package ring
