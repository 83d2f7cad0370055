// Package socket opens Unix sockets for tracers, and says who connected to one.
//
// A socket has its mode and owner from its first moment on. A lock beside it, which the
// kernel gives back however the daemon ends, keeps a second daemon off it; under the lock,
// the file of a daemon that died is replaced. No link is followed, and no file of any
// other kind is ever removed. It keeps nothing but the listener and its lock.
package socket
