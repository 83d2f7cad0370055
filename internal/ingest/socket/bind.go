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

// probeTimeout bounds the look at a socket file that is there already.
const probeTimeout = time.Second

// lockFor holds the lock beside the socket for as long as the daemon lives; the
// kernel gives it back however the daemon ends. Under it, whoever finds a stale
// socket may remove it without another one doing the same.
func lockFor(path string) (*os.File, error) {
	name := path + ".lock"
	fd, err := unix.Open(name, unix.O_CREAT|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock %s: %w; check that the directory may be written, and that this "+
			"file is not another user's", name, err)
	}
	file := os.NewFile(uintptr(fd), name)
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("listen on socket: another process listens on %s and holds its lock; stop "+
			"it or choose another --socket", path)
	}
	return file, nil
}

// open binds the socket, with its mode from its first moment on.
func (s *Config) open() (*net.UnixListener, error) {
	if err := removeStale(s.Path); err != nil {
		return nil, err
	}
	// The umask is the process's; what other files the daemon makes is for itself alone.
	earlier := unix.Umask(int(^s.Mode & 0o777))
	bound, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Path, Net: "unix"})
	unix.Umask(earlier)
	if err != nil {
		return nil, fmt.Errorf("listen on socket: %w; check that the directory may be written", err)
	}
	bound.SetUnlinkOnClose(false) // by then another daemon's socket may stand there
	if s.Owner != nil {
		if err := os.Lchown(s.Path, s.Owner.UID, s.Owner.GID); err != nil {
			bound.Close()
			return nil, fmt.Errorf("set socket owner: %w; leave --socket-owner out to keep the daemon's", err)
		}
	}
	return bound, nil
}

// removeStale removes the socket of a daemon that is gone.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("listen on socket: %s is there and is no socket; remove it or choose another "+
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
		return fmt.Errorf("look at socket: %w; remove %s if no daemon uses it", err, path)
	}
}
