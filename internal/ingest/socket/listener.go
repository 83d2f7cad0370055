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
	isRejecting bool
	restoreErr  error // why Watch could not create the socket again; nil if it exists
}

// Listen opens the Unix socket at config.Path. If the service manager has passed a socket to this process, it uses
// that one instead. It replaces the socket of a crashed daemon, but returns an error if another process listens at
// the path, or if the path is another kind of file, such as a symbolic link.
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

// listenInherited returns a Listener for a socket that a service manager, such as systemd, has created and passed
// to this process. The service manager passes the same socket to the next daemon. So this process must neither shut
// it down nor remove its file.
func listenInherited(config Config) (*Listener, error) {
	file, err := os.Lstat(config.Path)
	if err != nil {
		return nil, fmt.Errorf("check the inherited socket: %w; restart the service manager's socket unit", err)
	}
	config.Inherited.SetUnlinkOnClose(false)
	return &Listener{config: config, sockets: []*net.UnixListener{config.Inherited}, file: file}, nil
}

// bind creates a socket at config.Path, and appends it to the sockets of the Listener.
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
	l.sockets = append(l.sockets, socket)
	l.file = file
	return nil
}

// Accept is like AcceptUnix, for net.Listener.
func (l *Listener) Accept() (net.Conn, error) { return l.AcceptUnix() }

// AcceptUnix waits for the next connection and returns it. After RejectNew, it returns the connections that are already
// pending, and then net.ErrClosed. If the socket comes from the service manager, it returns net.ErrClosed at once,
// and the next daemon accepts the pending connections.
func (l *Listener) AcceptUnix() (*net.UnixConn, error) {
	for {
		socket := l.oldest()
		conn, err := socket.AcceptUnix()
		wasInterrupted := errors.Is(err, os.ErrDeadlineExceeded) // by interruptAccept
		hasNoMore := errors.Is(err, unix.EINVAL) || errors.Is(err, net.ErrClosed)
		switch {
		case wasInterrupted && l.isInherited():
			return nil, net.ErrClosed
		case wasInterrupted: // the socket is shut down, but can have pending connections
			_ = socket.SetDeadline(time.Time{})
		case hasNoMore:
			isReplaced := l.removeOldest() // by a newer socket, from which the next connections are accepted
			if !isReplaced {
				return nil, net.ErrClosed
			}
		default:
			return conn, err
		}
	}
}

// interruptAccept makes a call of AcceptUnix that waits at the socket return os.ErrDeadlineExceeded.
func interruptAccept(socket *net.UnixListener) {
	past := time.Unix(1, 0)
	_ = socket.SetDeadline(past) // fails only if the socket is closed
}

// oldest returns the socket from which connections are accepted first. Newer sockets have replaced it.
func (l *Listener) oldest() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sockets[0]
}

// removeOldest closes the oldest socket and removes it from l.sockets. If no newer socket has replaced it, removeOldest
// does nothing and returns false. The caller must have accepted all pending connections of the socket.
func (l *Listener) removeOldest() (isReplaced bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sockets) == 1 {
		return false
	}
	oldest := l.sockets[0]
	l.sockets = l.sockets[1:]
	oldest.Close()
	return true
}

// newest returns the socket to which clients connect. The caller holds mu.
func (l *Listener) newest() *net.UnixListener { return l.sockets[len(l.sockets)-1] }

// Addr returns the address of the socket.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.config.Path, Net: "unix"} }

// RejectNew rejects new connections. Connections that are already pending can still be accepted. A socket from the
// service manager is for the next daemon, too: RejectNew does not close it, but only makes AcceptUnix return
// net.ErrClosed.
func (l *Listener) RejectNew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isRejecting = true
	if l.isInherited() {
		interruptAccept(l.config.Inherited)
		return
	}
	shutdown(l.newest()) // the older ones are shut down already
}

// shutdown makes a socket reject new connections, and interrupts a waiting call of AcceptUnix. From then on, accept(2)
// returns the pending connections and then EINVAL. Linux returns EINVAL only for a blocking socket, so shutdown makes it
// blocking.
func shutdown(socket *net.UnixListener) {
	rawConn, err := socket.SyscallConn()
	if err != nil {
		return // closed
	}
	_ = rawConn.Control(func(fd uintptr) {
		err := unix.Shutdown(int(fd), unix.SHUT_RD)
		if err == nil {
			_ = unix.SetNonblock(int(fd), false)
		}
	})
	interruptAccept(socket)
}

// Close closes the socket and removes its file, unless another process has replaced the file. Then it releases the lock,
// so that another daemon can create a socket at the same path. It keeps the lock file: if it were removed, two daemons
// could hold locks on two files of the same name.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isRejecting = true
	if l.isInherited() {
		return l.config.Inherited.Close() // closes this process's descriptor only
	}
	var removeErr error
	if isSameFile(l.config.Path, l.file) { // an open socket's inode number is not reused, so the comparison is reliable
		removeErr = os.Remove(l.config.Path)
	}
	for _, socket := range l.sockets {
		socket.Close() // fails only if it is closed
	}
	return errors.Join(removeErr, l.lock.Close())
}

// isSameFile reports whether the file at path is the given one, and not a new file with the same name.
func isSameFile(path string, file fs.FileInfo) bool {
	current, err := os.Lstat(path)
	return err == nil && os.SameFile(current, file)
}

// restore creates the socket again if its file was removed or replaced. isRestored is false if that is not needed, or
// if the Listener accepts no more connections. restore can't create a socket that came from the service manager, and
// returns an error instead.
func (l *Listener) restore() (isRestored bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	isInPlace := isSameFile(l.config.Path, l.file)
	if isInPlace || l.isRejecting {
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
	shutdown(previous) // AcceptUnix still returns its pending connections, before those of the new socket
	return true, nil
}

// restoreLock creates and locks a new lock file if the file that this process has locked was removed. Without it,
// another daemon could lock a new file with the same name, and replace the socket.
func (l *Listener) restoreLock() error {
	lockedFile, err := l.lock.Stat()
	isInPlace := err == nil && isSameFile(l.lock.Name(), lockedFile)
	if isInPlace {
		return nil
	}
	newLock, err := lockSocket(l.config.Path)
	if err != nil {
		return err
	}
	l.lock.Close()
	l.lock = newLock
	return nil
}

func (l *Listener) isInherited() bool { return l.config.Inherited != nil }

// watchInterval is the interval at which Watch checks the socket's file.
const watchInterval = time.Second

// Watch checks every second whether the file of the socket was removed, and creates the socket again, because
// clients can't connect without the file. If that fails, it logs the error, but not again at each check. It returns
// when stop is closed.
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

// checkFile creates the socket again if its file was removed, and logs that. If this fails, it stores the error in
// l.restoreErr, and logs the error unless it is the same as at the previous check.
func (l *Listener) checkFile(log *slog.Logger) {
	isRestored, err := l.restore()
	l.mu.Lock()
	previousErr := l.restoreErr
	l.restoreErr = err
	l.mu.Unlock()
	isSameError := fmt.Sprint(err) == fmt.Sprint(previousErr)
	switch {
	case err != nil && !isSameError:
		log.Error("the socket was removed and can't be created again, so clients can't connect; retrying every "+
			"second",
			"socket", l.config.Path, "error", err)
	case isRestored:
		log.Warn("the socket was removed, and has been created again; find the process that removes it", "socket", l.config.Path)
	}
}

// Unreachable returns the reason why clients can't connect to the socket, or nil if they can.
func (l *Listener) Unreachable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restoreErr
}
