package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/activation"
)

// Sockets are those that the service manager listens on and has given to this daemon
// (socket activation): LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES. It keeps them when the
// daemon ends, so whoever connects between two daemons waits for the next one.
type Sockets struct{ given []net.Listener }

// TakeSockets takes what was given, which may be nothing. It has an error for what is no
// socket that listens for connections.
func TakeSockets() (s Sockets, err error) {
	for _, file := range activation.Files(true) {
		listener, bad := net.FileListener(file) // of a descriptor of its own
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("take socket %s of the service manager: %w; give "+
				"ListenStream= and nothing else", file.Name(), bad))
		} else {
			s.given = append(s.given, listener)
		}
		file.Close()
	}
	return s, err
}

// Unix takes the socket at a path, nil where none was given.
func (s *Sockets) Unix(path string) *net.UnixListener {
	taken, _ := s.take(func(of net.Addr) bool {
		return of.Network() == "unix" && isSamePath(of.String(), path)
	}).(*net.UnixListener)
	return taken
}

// TCP takes the one of an address, nil where none was given.
func (s *Sockets) TCP(addr string) net.Listener {
	wanted, err := net.ResolveTCPAddr("tcp", addr)
	if addr == "" || err != nil {
		return nil
	}
	return s.take(func(of net.Addr) bool {
		tcp, ok := of.(*net.TCPAddr)
		return ok && tcp.Port == wanted.Port &&
			(tcp.IP.Equal(wanted.IP) || tcp.IP.IsUnspecified() && wanted.IP == nil)
	})
}

func (s *Sockets) take(is func(net.Addr) bool) net.Listener {
	for i, listener := range s.given {
		if listener != nil && is(listener.Addr()) {
			s.given[i] = nil
			return listener
		}
	}
	return nil
}

// CheckTaken has an error for every socket that nothing took: whoever connects to it would
// wait for ever.
func (s *Sockets) CheckTaken() (err error) {
	for _, listener := range s.given {
		if listener != nil {
			err = errors.Join(err, fmt.Errorf("take sockets of the service manager: no flag names %s; give "+
				"the same in ListenStream= and in --socket, or --apm-socket, --apm-addr, --otlp-socket, "+
				"--otlp-addr", listener.Addr()))
		}
	}
	return err
}

// isSamePath says whether two paths lead to one file: /var/run is a link to /run.
func isSamePath(a, b string) bool {
	if b == "" {
		return false
	}
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	one, err := os.Lstat(a)
	other, otherErr := os.Lstat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}
