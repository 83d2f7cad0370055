package ingest

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// maxSocketPath is what the kernel has room for in a Unix address.
const maxSocketPath = 107

// probeTimeout bounds the look at a socket file that is there already.
const probeTimeout = time.Second

// Listen opens the socket at path. A socket that a daemon left behind when it
// died is replaced; one that somebody listens on, or a file of any other kind,
// is an error and is never removed.
func Listen(path string, mode fs.FileMode) (*net.UnixListener, error) {
	if path == "" {
		return nil, errors.New("listen on socket: the path is empty; give one with --socket")
	}
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listen on socket: the path has %d bytes and a socket's may have %d; choose a shorter --socket: %s",
			len(path), maxSocketPath, path)
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("listen on socket: %w; create the directory or choose another --socket", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("listen on socket: %s is not a directory; choose another --socket", dir)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on socket: %w; check that the directory may be written", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		listener.Close()
		return nil, fmt.Errorf("set socket mode: %w", err)
	}
	return listener, nil
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
		return fmt.Errorf("listen on socket: %s is there and is no socket; remove it or choose another --socket", path)
	}
	conn, err := net.DialTimeout("unix", path, probeTimeout)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("listen on socket: another process listens on %s; stop it or choose another --socket", path)
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
