// Package socket opens Unix sockets for tracers, and says who connected to one.
//
// A socket has its mode and owner from its first moment on. A lock beside it, which the
// kernel gives back however the daemon ends, keeps a second daemon off it; under the lock,
// the file of a daemon that died is replaced. No link is followed, and no file of any
// other kind is ever removed. A socket whose file is gone is made again by who watches it,
// and a listener that ends removes no file but its own.
//
// A socket that a service manager made, and gives to one daemon after the other, is neither
// locked nor shut nor removed.
//
// One goroutine at a time accepts; a lock guards the rest. A Listener holds one descriptor
// and its lock's, and more only while earlier sockets are not empty yet.
package socket
