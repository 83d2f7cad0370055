package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/activation"
)

// Sockets are the sockets inherited from the service manager (socket activation): LISTEN_PID,
// LISTEN_FDS and LISTEN_FDNAMES. The service manager keeps them open, so clients that connect while
// no daemon is running wait for the next one.
type Sockets struct{ given []net.Listener }

// TakeSockets returns the inherited sockets, if any. The error names each file that is not a
// listening socket.
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

// Unix returns the socket at a path, or nil if it was not inherited.
func (s *Sockets) Unix(path string) *net.UnixListener {
	taken, _ := s.take(func(of net.Addr) bool {
		return of.Network() == "unix" && isSamePath(of.String(), path)
	}).(*net.UnixListener)
	return taken
}

// TCP returns the listener on an address, or nil if it was not inherited.
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

// take removes and returns the first socket whose address satisfies a condition, or nil.
func (s *Sockets) take(is func(net.Addr) bool) net.Listener {
	for i, listener := range s.given {
		if listener != nil && is(listener.Addr()) {
			s.given[i] = nil
			return listener
		}
	}
	return nil
}

// CheckTaken returns an error for every socket that was not used, because clients that connect to
// it would wait forever.
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

// isSamePath reports whether two paths are the same file: /var/run is a link to /run.
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
