// Package ring records concurrent operations of producers and a consumer on the ring, and uses
// porcupine to search for a sequential order in which a simple list would have returned the same
// results. Without such an order, the ring is not linearizable.
//
// The package is a separate module, so that porcupine does not become a dependency of the daemon.
package ring
