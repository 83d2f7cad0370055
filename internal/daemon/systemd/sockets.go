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

// TakeSockets returns the sockets that the process has inherited from the service manager, if any. The error
// names each inherited file that is not a listening socket.
func TakeSockets() (s Sockets, err error) {
	const unsetsEnvironment = true // child processes do not inherit the sockets
	for _, file := range activation.Files(unsetsEnvironment) {
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

// TCP returns the inherited listener on a TCP address, or nil if there is none. An address without a host,
// such as ":4318", matches a listener on all addresses of the machine.
func (s *Sockets) TCP(addr string) net.Listener {
	if addr == "" { // ResolveTCPAddr would accept it
		return nil
	}
	wanted, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil
	}
	isWanted := func(address net.Addr) bool {
		inherited, isTCP := address.(*net.TCPAddr)
		return isTCP && isSameTCPAddr(inherited, wanted)
	}
	return s.take(isWanted)
}

// isSameTCPAddr reports whether two TCP addresses have the same port and the same IP address. If wanted has
// no IP address, inherited must have none, or the unspecified one (0.0.0.0 or ::).
func isSameTCPAddr(inherited, wanted *net.TCPAddr) bool {
	if inherited.Port != wanted.Port {
		return false
	}
	if wanted.IP == nil {
		return inherited.IP == nil || inherited.IP.IsUnspecified()
	}
	return inherited.IP.Equal(wanted.IP)
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

// CheckTaken returns an error for each inherited socket that neither the method Unix nor TCP has returned.
// Clients that connect to such a socket would wait forever.
func (s *Sockets) CheckTaken() (err error) {
	for _, listener := range s.inherited {
		if listener != nil {
			err = errors.Join(err, fmt.Errorf("use sockets of the service manager: no flag has the address %s; "+
				"set the address in ListenStream= with --socket, --apm-socket, --apm-addr, --otlp-socket, "+
				"--otlp-addr, --zipkin-socket or --zipkin-addr", listener.Addr()))
		}
	}
	return err
}

// isSamePath reports whether two paths refer to the same file, even if they differ because of a symbolic
// link to a directory, such as /var/run to /run. It returns false if a path is empty.
func isSamePath(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	// Unlike Stat, Lstat does not follow a link in the last part of the path: a link to a socket is another file.
	infoA, errA := os.Lstat(a)
	infoB, errB := os.Lstat(b)
	if errA != nil || errB != nil {
		return false
	}
	return os.SameFile(infoA, infoB)
}
