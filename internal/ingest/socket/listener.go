package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Listener is an open socket with its file and its lock. One goroutine at a time can accept connections; all other
// methods are safe for concurrent use.
type Listener struct {
	config Config

	mu sync.Mutex
	// the last one is at config.Path; the others have been replaced and still have pending connections
	sockets     []*net.UnixListener
	file        fs.FileInfo // file of the last socket, to distinguish it from that of another daemon
	lock        *os.File
	isShut      bool
	unreachable error // why clients cannot find the socket, according to Watch
}

// Listen opens the socket at config.Path, or uses the one inherited from the service manager. It replaces the socket
// of a crashed daemon, but returns an error if another process listens on it or the path is another kind of file. A
// symbolic link at the path is not followed.
func Listen(config Config) (*Listener, error) {
	if err := config.Check("socket"); err != nil {
		return nil, err
	}
	if config.Inherited != nil {
		return listenInherited(config)
	}
	if err := config.PrepareDirectory(); err != nil {
		return nil, err
	}
	lock, err := lockSocket(config.Path)
	if err != nil {
		return nil, err
	}
	l := &Listener{config: config, lock: lock}
	if err := l.bind(); err != nil {
		lock.Close()
		return nil, err
	}
	return l, nil
}

// listenInherited returns a Listener for a socket that the service manager passes to one daemon after the other. The
// service manager keeps it open between them, so a daemon must not shut it down or remove it: pending connections,
// with the data that their clients have written, are accepted by the next daemon. The service manager also sets mode
// and owner, and ensures that only one daemon uses the socket.
func listenInherited(config Config) (*Listener, error) {
	file, err := os.Lstat(config.Path)
	if err != nil {
		return nil, fmt.Errorf("check the inherited socket: %w; restart the service manager's socket unit", err)
	}
	config.Inherited.SetUnlinkOnClose(false)
	return &Listener{config: config, sockets: []*net.UnixListener{config.Inherited}, file: file}, nil
}

// bind creates the socket at its path and appends it to l.sockets.
func (l *Listener) bind() error {
	socket, err := l.config.create()
	if err != nil {
		return err
	}
	file, err := os.Lstat(l.config.Path)
	if err != nil {
		socket.Close()
		return fmt.Errorf("check socket: %w; find the process that removes files in its directory", err)
	}
	l.sockets, l.file = append(l.sockets, socket), file
	return nil
}

// Accept returns the next connection. After Shut, it returns the pending connections and then
// net.ErrClosed. Pending connections of an inherited socket are left to the next daemon.
func (l *Listener) Accept() (net.Conn, error) { return l.AcceptUnix() }

// AcceptUnix is like Accept, but returns a *net.UnixConn.
func (l *Listener) AcceptUnix() (*net.UnixConn, error) {
	for {
		socket := l.oldest()
		conn, err := socket.AcceptUnix()
		isShutDown := errors.Is(err, os.ErrDeadlineExceeded) // see shutdown and Shut
		isDrained := errors.Is(err, unix.EINVAL) || errors.Is(err, net.ErrClosed)
		switch {
		case isShutDown && l.isInherited():
			return nil, net.ErrClosed
		case isShutDown:
			_ = socket.SetDeadline(time.Time{}) // pending connections are still accepted
		case !isDrained:
			return conn, err
		case !l.removeOldest(socket):
			return nil, net.ErrClosed
		}
	}
}

// oldest returns the socket to accept from.
func (l *Listener) oldest() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sockets[0]
}

// removeOldest closes the oldest socket, which has no pending connections. If it is the only one, removeOldest returns
// false and does nothing.
func (l *Listener) removeOldest(oldest *net.UnixListener) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sockets) == 1 {
		return false
	}
	l.sockets = l.sockets[1:]
	oldest.Close()
	return true
}

// newest returns the socket that clients connect to.
func (l *Listener) newest() *net.UnixListener { return l.sockets[len(l.sockets)-1] }

// Addr returns the address of the socket.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.config.Path, Net: "unix"} }

// Shut rejects further connections. The kernel decides which ones: clients that connected before are accepted, with
// all data that they have written, and later ones get an error. An inherited socket is not shut down; Shut only makes
// Accept return.
func (l *Listener) Shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isShut = true
	if l.isInherited() {
		_ = l.config.Inherited.SetDeadline(time.Unix(1, 0)) // fails only if it is closed
		return
	}
	shutdown(l.newest())
}

// shutdown makes a socket reject further connections. From then on, accept returns the pending connections and then
// EINVAL. The kernel returns EINVAL only for a blocking socket, and Go calls accept again only after a timeout, so
// shutdown sets both.
func shutdown(socket *net.UnixListener) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return // closed
	}
	_ = raw.Control(func(fd uintptr) {
		if unix.Shutdown(int(fd), unix.SHUT_RD) == nil {
			_ = unix.SetNonblock(int(fd), false)
		}
	})
	_ = socket.SetDeadline(time.Unix(1, 0))
}

// Close removes the socket's file if it is still that of this Listener, closes the socket, and releases the lock. In
// this order, no other file can have the inode number of the socket's file when they are compared. The lock file is
// not removed, because otherwise two daemons could hold locks on two files with this name.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isShut = true
	if l.isInherited() {
		return l.config.Inherited.Close() // closes this process's descriptor only
	}
	var removeErr error
	if isSameFile(l.config.Path, l.file) {
		removeErr = os.Remove(l.config.Path)
	}
	for _, socket := range l.sockets {
		socket.Close() // fails only if it is closed
	}
	return errors.Join(removeErr, l.lock.Close())
}

// isSameFile reports whether path is the given file.
func isSameFile(path string, file fs.FileInfo) bool {
	current, err := os.Lstat(path)
	return err == nil && os.SameFile(current, file)
}

// restore creates the socket again if its file was removed. Pending connections of the previous socket are accepted
// before those of the new one.
func (l *Listener) restore() (restored bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isShut || isSameFile(l.config.Path, l.file) {
		return false, nil
	}
	if l.isInherited() {
		return false, fmt.Errorf("check the inherited socket: %s was removed; restart the service manager's "+
			"socket unit", l.config.Path)
	}
	if err := l.config.PrepareDirectory(); err != nil {
		return false, err
	}
	if err := l.restoreLock(); err != nil {
		return false, err
	}
	previous := l.newest()
	if err := l.bind(); err != nil {
		return false, err
	}
	shutdown(previous)
	return true, nil
}

// restoreLock locks a new file if the lock file was removed, too. Otherwise another daemon could lock a new file.
func (l *Listener) restoreLock() error {
	locked, err := l.lock.Stat()
	if err == nil && isSameFile(l.lock.Name(), locked) {
		return nil
	}
	lock, err := lockSocket(l.config.Path)
	if err != nil {
		return err
	}
	l.lock.Close()
	l.lock = lock
	return nil
}

func (l *Listener) isInherited() bool { return l.config.Inherited != nil }

// watchInterval is the interval at which Watch checks the socket's file.
const watchInterval = time.Second

// Watch creates the socket again if its file is removed, until stop is closed. Otherwise, clients could not
// connect to a daemon that seems healthy. If Watch cannot create the socket, it logs the reason once, and
// Unreachable returns it.
func (l *Listener) Watch(stop <-chan struct{}, log *slog.Logger) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.checkFile(log)
		case <-stop:
			return
		}
	}
}

// checkFile checks the socket's file once.
func (l *Listener) checkFile(log *slog.Logger) {
	restored, err := l.restore()
	l.mu.Lock()
	previous := l.unreachable
	l.unreachable = err
	l.mu.Unlock()
	isNewError := err != nil && (previous == nil || previous.Error() != err.Error())
	switch {
	case isNewError:
		log.Error("the socket was removed and can't be created again, so clients can't connect; retrying every "+
			"second",
			"socket", l.config.Path, "error", err)
	case restored:
		log.Warn("the socket was removed, and has been created again; find the process that removes it", "socket", l.config.Path)
	}
}

// Unreachable returns the reason why clients cannot find the socket, or nil.
func (l *Listener) Unreachable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unreachable
}
