package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/coreos/go-systemd/v22/activation"
)

// Sockets are the sockets inherited from the service manager (socket activation with LISTEN_PID, LISTEN_FDS and
// LISTEN_FDNAMES). The service manager keeps them open, so clients that connect while no daemon is running wait for
// the next one.
type Sockets struct {
	inherited []net.Listener // nil elements are in use
}

// TakeSockets returns the inherited sockets, if any. The error names each file that is not a
// listening socket.
func TakeSockets() (s Sockets, err error) {
	for _, file := range activation.Files(true) {
		listener, fileErr := net.FileListener(file) // duplicates the file descriptor
		if fileErr != nil {
			err = errors.Join(err, fmt.Errorf("use socket %s of the service manager: %w; configure it with "+
				"ListenStream=", file.Name(), fileErr))
		} else {
			s.inherited = append(s.inherited, listener)
		}
		file.Close()
	}
	return s, err
}

// Unix returns the socket at a path, or nil if it was not inherited.
func (s *Sockets) Unix(path string) *net.UnixListener {
	listener, _ := s.take(func(address net.Addr) bool {
		return address.Network() == "unix" && isSamePath(address.String(), path)
	}).(*net.UnixListener)
	return listener
}

// TCP returns the listener on an address, or nil if it was not inherited. An address without a host matches a listener on
// an unspecified IP address.
func (s *Sockets) TCP(addr string) net.Listener {
	wanted, err := net.ResolveTCPAddr("tcp", addr)
	if addr == "" || err != nil {
		return nil
	}
	return s.take(func(address net.Addr) bool {
		tcp, ok := address.(*net.TCPAddr)
		return ok && tcp.Port == wanted.Port &&
			(tcp.IP.Equal(wanted.IP) || tcp.IP.IsUnspecified() && wanted.IP == nil)
	})
}

// take removes and returns the first socket with a matching address, or nil if no address matches.
func (s *Sockets) take(matches func(net.Addr) bool) net.Listener {
	for i, listener := range s.inherited {
		if listener != nil && matches(listener.Addr()) {
			s.inherited[i] = nil
			return listener
		}
	}
	return nil
}

// CheckTaken returns the joined errors of all unused sockets: clients that connect to an unused socket would wait
// forever.
func (s *Sockets) CheckTaken() (err error) {
	for _, listener := range s.inherited {
		if listener != nil {
			err = errors.Join(err, fmt.Errorf("use sockets of the service manager: no flag has the address %s; "+
				"give the address in ListenStream= also to --socket, --apm-socket, --apm-addr, --otlp-socket, "+
				"--otlp-addr, --zipkin-socket or --zipkin-addr", listener.Addr()))
		}
	}
	return err
}

// isSamePath reports whether two paths are those of the same file. They can differ because /var/run is a symbolic link to
// /run.
func isSamePath(a, b string) bool {
	if b == "" {
		return false
	}
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	infoA, errA := os.Lstat(a)
	infoB, errB := os.Lstat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
