// Package socket opens the Unix sockets that clients connect to, and identifies the peers of connections.
//
// A socket has its final mode and owner from its creation on. A lock on a file next to it, which the kernel releases
// when the daemon ends, keeps a second daemon from using the same path. The daemon that holds the lock replaces the
// socket of a crashed daemon. It never follows a symbolic link at the path, nor removes a file of another kind. If the
// socket's file is removed, Watch creates it again. A Listener removes only its own file when it is closed.
//
// A socket that is inherited from a service manager stays open when the daemon ends, for the next daemon. It is not
// locked, shut down or removed.
//
// Concurrency: one goroutine at a time can accept connections; all other methods are safe for concurrent use.
//
// Limits: a Listener holds two file descriptors, and one more for each replaced socket with pending connections.
package socket
