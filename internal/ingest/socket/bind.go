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

// lockSocket creates and locks the file path+".lock". A process must hold this lock to create or replace the socket
// at path. lockSocket returns an error if another process holds it. The kernel releases the lock when the returned
// file is closed or the process ends.
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

// create creates the Unix socket at s.Path, sets its mode and owner, and listens on it. It replaces an existing
// socket if no process listens on that, and otherwise returns an error.
func (s *Config) create() (*net.UnixListener, error) {
	if err := removeStale(s.Path); err != nil {
		return nil, err
	}
	listener, err := listenWithMode(s.Path, s.Mode)
	if err != nil {
		return nil, fmt.Errorf("listen on socket: %w; check that the directory is writable", err)
	}
	listener.SetUnlinkOnClose(false) // another daemon may have created a socket at the path by then
	if s.Owner != nil {
		if err := os.Lchown(s.Path, s.Owner.UID, s.Owner.GID); err != nil {
			listener.Close()
			return nil, fmt.Errorf("set socket owner: %w; remove --socket-owner to keep the daemon's user and "+
				"group", err)
		}
	}
	return listener, nil
}

// listenWithMode listens on a new socket that has the given mode from the start. For that, it changes the umask of the
// process. Other files that are created meanwhile are not affected, because their modes give others no permissions.
func listenWithMode(path string, mode fs.FileMode) (*net.UnixListener, error) {
	previous := unix.Umask(int(^mode & 0o777))
	defer unix.Umask(previous)
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}

// removeStale removes the Unix socket at path if no process listens on it. It returns nil if there is no file at
// path. It returns an error if a process listens on the socket, or if the file is not a socket.
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
	if err == nil {
		conn.Close()
		return fmt.Errorf("listen on socket: another process listens on %s; stop it or choose another "+
			"--socket", path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		return nil
	case errors.Is(err, syscall.ECONNREFUSED): // no process listens
		return removeIfExists(path)
	default:
		return fmt.Errorf("check socket: %w; remove %s if no daemon uses it", err, path)
	}
}

// removeIfExists removes a socket. It returns nil if the socket has already been removed.
func removeIfExists(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove stale socket: %w", err)
	}
	return nil
}
