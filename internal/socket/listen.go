package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Config says where a socket is and who may connect to it.
type Config struct {
	Path           string
	Mode           fs.FileMode
	Owner          *Owner            // nil: the daemon's own
	DirectoryMode  fs.FileMode       // 0: the directory must be there, and is left as it is
	DirectoryOwner *Owner            // nil: left as it is
	Given          *net.UnixListener // the socket itself, where a service manager made it
}

// Owner is a user and a group, by number: there are no names in an empty image.
type Owner struct{ UID, GID int }

// maxSocketPath is what the kernel has room for in a Unix address.
const maxSocketPath = 107

// probeTimeout bounds the look at a socket file that is there already.
const probeTimeout = time.Second

// Listen opens the socket. A socket that a daemon left behind when it died is
// replaced; one that somebody listens on, or a file of any other kind, is an
// error and is never removed. No link is followed at the path itself.
func Listen(s Config) (*Listener, error) {
	if err := s.Check("socket"); err != nil {
		return nil, err
	}
	if s.Given != nil {
		return listenGiven(s)
	}
	if err := s.PrepareDirectory(); err != nil {
		return nil, err
	}
	lock, err := lockFor(s.Path)
	if err != nil {
		return nil, err
	}
	l := &Listener{config: s, lock: lock}
	if err := l.bind(); err != nil {
		lock.Close()
		return nil, err
	}
	return l, nil
}

// Check says why there can be no socket at the path that a flag gives.
func (s *Config) Check(flag string) error {
	if s.Path == "" {
		return fmt.Errorf("check %s: the path is empty; give one with --%s", flag, flag)
	}
	if len(s.Path) > maxSocketPath {
		return fmt.Errorf("check %s: the path has %d bytes and a socket's may have %d; choose a shorter "+
			"--%s: %s",
			flag, len(s.Path), maxSocketPath, flag, s.Path)
	}
	return nil
}

// PrepareDirectory makes the directory if it was given a mode, and otherwise
// expects it.
func (s *Config) PrepareDirectory() error {
	if err := s.Check("socket"); err != nil {
		return err
	}
	dir := filepath.Dir(s.Path)
	if s.DirectoryMode != 0 {
		if err := os.Mkdir(dir, s.DirectoryMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make socket directory: %w; make its parent or choose another --socket", err)
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("listen on socket: %w; create the directory, or have spanstatsd prepare make it",
			err)
	}
	if !info.IsDir() {
		return fmt.Errorf("listen on socket: %s is not a directory; choose another --socket", dir)
	}
	if s.DirectoryMode != 0 && info.Mode().Perm() != s.DirectoryMode {
		if err := os.Chmod(dir, s.DirectoryMode); err != nil {
			return fmt.Errorf("set directory mode: %w; leave --directory-mode out to take it as it is", err)
		}
	}
	if s.DirectoryOwner != nil {
		if err := os.Chown(dir, s.DirectoryOwner.UID, s.DirectoryOwner.GID); err != nil {
			return fmt.Errorf("set directory owner: %w; leave --directory-owner out to take it as it is", err)
		}
	}
	return nil
}

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
