package ingest

import "net"

// Listen opens a socket by the rules of the daemon's own, for a room that speaks
// another protocol on it.
func Listen(s Socket) (*net.UnixListener, func() error, error) {
	l, err := listen(s)
	if err != nil {
		return nil, nil, err
	}
	return l.UnixListener, l.Close, nil
}

// Identify asks the kernel who connected: the user, and the process and the container
// where they can be told.
func Identify(socket *net.UnixConn) (uid uint32, pid int32, container string, err error) {
	p, err := credentials(socket)
	return p.uid, p.pid, p.container, err
}
