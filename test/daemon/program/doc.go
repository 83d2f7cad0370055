// Package program has tests only, of the daemon's program as operators run it: a process that
// is started, queried, signaled, paused and killed. It is built once, with the race detector
// where the tests have it.
package program
