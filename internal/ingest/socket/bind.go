package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// probeTimeout limits the attempt to connect to a socket that already exists.
const probeTimeout = time.Second

// lockSocket locks a file next to the socket, and fails if another process holds the lock. The kernel
// releases the lock when the file is closed or the process ends. Only the holder may remove a stale socket,
// so two daemons never do so at the same time.
func lockSocket(path string) (*os.File, error) {
	name := path + ".lock"
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock %s: %w; check that the directory is writable, and that no other user "+
			"owns the file", name, err)
	}
	file := os.NewFile(uintptr(fd), name)
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("listen on socket: another process listens on %s and holds its lock; stop "+
			"it or choose another --socket", path)
	}
	return file, nil
}

// create creates the socket with its final mode and owner. It replaces a stale socket at the same path.
func (s *Config) create() (*net.UnixListener, error) {
	if err := removeStale(s.Path); err != nil {
		return nil, err
	}
	// The umask applies to the whole process. Other files that the daemon creates have explicit modes without
	// permissions for others.
	previous := unix.Umask(int(^s.Mode & 0o777))
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Path, Net: "unix"})
	unix.Umask(previous)
	if err != nil {
		return nil, fmt.Errorf("listen on socket: %w; check that the directory is writable", err)
	}
	listener.SetUnlinkOnClose(false) // the path may then be another daemon's socket
	if s.Owner != nil {
		if err := os.Lchown(s.Path, s.Owner.UID, s.Owner.GID); err != nil {
			listener.Close()
			return nil, fmt.Errorf("set socket owner: %w; remove --socket-owner to keep the daemon's user and "+
				"group", err)
		}
	}
	return listener, nil
}

// removeStale removes a socket on which no process listens. It returns an error for a socket in use and for
// every other kind of file.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("listen on socket: %s exists and is not a socket; remove it or choose another "+
			"--socket", path)
	}
	conn, err := net.DialTimeout("unix", path, probeTimeout)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("listen on socket: another process listens on %s; stop it or choose another "+
			"--socket", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove stale socket: %w", err)
		}
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return fmt.Errorf("check socket: %w; remove %s if no daemon uses it", err, path)
	}
}
