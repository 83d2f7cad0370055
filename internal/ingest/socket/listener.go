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

// Listener is an open socket, the file that it is found by, and the lock that keeps a
// second daemon off it. One goroutine at a time accepts; any may do the rest.
type Listener struct {
	config Config

	mu     sync.Mutex
	bound  []*net.UnixListener // the one at the path, behind earlier ones that are not empty yet
	file   fs.FileInfo         // of the socket, to tell it from a successor's
	lock   *os.File
	isShut bool
	lack   error // why tracers can't find the socket now, as Watch saw it
}

// Listen opens the socket. A socket that a daemon left behind when it died is
// replaced; one that somebody listens on, or a file of any other kind, is an
// error and is never removed. No link is followed at the path itself.
func Listen(s Config) (*Listener, error) {
	if err := s.Check("socket"); err != nil {
		return nil, err
	}
	if s.Inherited != nil {
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

// A socket that a service manager has made is given to one daemon after the other, and stays
// open while there is none. So a daemon that stops leaves it as it is: it is neither shut,
// which would shut it for the next daemon as well, nor removed. Tracers that connected and
// were not accepted wait in it, with all that they have written, and the next daemon accepts
// and counts them. Its mode and owner, and a lock that keeps others off it, are the service
// manager's business.

// listenGiven takes a socket over.
func listenGiven(s Config) (*Listener, error) {
	file, err := os.Lstat(s.Path)
	if err != nil {
		return nil, fmt.Errorf("look at the socket that was given: %w; restart the service manager's "+
			"socket unit", err)
	}
	s.Inherited.SetUnlinkOnClose(false)
	return &Listener{config: s, bound: []*net.UnixListener{s.Inherited}, file: file}, nil
}

// bind opens the socket at its path.
func (l *Listener) bind() error {
	bound, err := l.config.open()
	if err != nil {
		return err
	}
	file, err := os.Lstat(l.config.Path)
	if err != nil {
		bound.Close()
		return fmt.Errorf("look at socket: %w; look for what removes the files of its directory", err)
	}
	l.bound, l.file = append(l.bound, bound), file
	return nil
}

// Accept returns the next connection. After Shut it returns those that were there already,
// and then net.ErrClosed; of a socket that was given it leaves them to the next daemon.
func (l *Listener) Accept() (net.Conn, error) { return l.AcceptUnix() }

// AcceptUnix is Accept, for those who ask the kernel about the peer.
func (l *Listener) AcceptUnix() (*net.UnixConn, error) {
	for {
		bound := l.oldest()
		conn, err := bound.AcceptUnix()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && l.isGiven():
			return nil, net.ErrClosed
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = bound.SetDeadline(time.Time{}) // it was shut; who waits in it is still accepted
		case !errors.Is(err, unix.EINVAL) && !errors.Is(err, net.ErrClosed):
			return conn, err
		case !l.leave(bound):
			return nil, net.ErrClosed
		}
	}
}

// oldest is the socket to accept from.
func (l *Listener) oldest() *net.UnixListener {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bound[0]
}

// leave goes on to the socket behind one that is empty, and reports whether there is one.
func (l *Listener) leave(empty *net.UnixListener) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.bound) == 1 {
		return false
	}
	l.bound = l.bound[1:]
	empty.Close()
	return true
}

// newest is the socket that is connected to.
func (l *Listener) newest() *net.UnixListener { return l.bound[len(l.bound)-1] }

// Addr is the socket's address.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.config.Path, Net: "unix"} }

// Shut ends connecting. The boundary is the kernel's: who connected before is still
// accepted, with all that it has written, and whoever comes after is refused with an error.
// A socket that was given is left instead.
func (l *Listener) Shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isShut = true
	if l.isGiven() {
		l.leaveGiven()
		return
	}
	shut(l.newest())
}

// shut ends connecting to one socket. From here on an accept waits for nobody: it returns
// who had connected before, and EINVAL behind the last of them. The kernel says so only of
// a socket in blocking mode, and Go only when it accepts anew.
func shut(bound *net.UnixListener) {
	raw, err := bound.SyscallConn()
	if err != nil {
		return // it is closed already
	}
	_ = raw.Control(func(fd uintptr) {
		if unix.Shutdown(int(fd), unix.SHUT_RD) == nil {
			_ = unix.SetNonblock(int(fd), false)
		}
	})
	_ = bound.SetDeadline(time.Unix(1, 0))
}

// Close removes the socket's file, if it is still ours, and gives the lock back, in this
// order. The socket stays open until then, so that nobody's file can have its number. The
// lock's own file stays: to remove it would let two daemons hold two locks of one name.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isShut = true
	if l.isGiven() {
		return l.config.Inherited.Close() // of our descriptor of it
	}
	var removed error
	if isFile(l.config.Path, l.file) {
		removed = os.Remove(l.config.Path)
	}
	for _, bound := range l.bound {
		bound.Close() // fails only where it was closed already
	}
	return errors.Join(removed, l.lock.Close())
}

// isFile says whether it is that file that stands at the path.
func isFile(path string, file fs.FileInfo) bool {
	found, err := os.Lstat(path)
	return err == nil && os.SameFile(found, file)
}

// restore makes the socket again if its file is gone. Tracers that had connected to the old
// socket are accepted before those of the new one.
func (l *Listener) restore() (restored bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isShut || isFile(l.config.Path, l.file) {
		return false, nil
	}
	if l.isGiven() {
		return false, l.errGivenGone()
	}
	if err := l.config.PrepareDirectory(); err != nil {
		return false, err
	}
	if err := l.holdLock(); err != nil {
		return false, err
	}
	earlier := l.newest()
	if err := l.bind(); err != nil {
		return false, err
	}
	shut(earlier)
	return true, nil
}

// holdLock takes the lock again if its file is gone too: another daemon could take it.
func (l *Listener) holdLock() error {
	held, err := l.lock.Stat()
	if err == nil && isFile(l.lock.Name(), held) {
		return nil
	}
	lock, err := lockFor(l.config.Path)
	if err != nil {
		return err
	}
	l.lock.Close()
	l.lock = lock
	return nil
}

func (l *Listener) isGiven() bool { return l.config.Inherited != nil }

// leaveGiven ends accepting and leaves those who wait to the next daemon.
func (l *Listener) leaveGiven() {
	_ = l.config.Inherited.SetDeadline(time.Unix(1, 0)) // fails only where it is closed already
}

// errGivenGone is what only the service manager can mend.
func (l *Listener) errGivenGone() error {
	return fmt.Errorf("look at the socket that was given: %s is gone; restart the service manager's socket "+
		"unit", l.config.Path)
}

// watchEvery is how often the socket's file is looked for.
const watchEvery = time.Second

// Watch makes the socket again when somebody removes its file, until stop is closed: a daemon
// that nobody can find would seem well for ever. If it can't make the socket, the reason is
// logged once, and Unreachable says so.
func (l *Listener) Watch(stop <-chan struct{}, log *slog.Logger) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.look(log)
		case <-stop:
			return
		}
	}
}

// look looks for the file once.
func (l *Listener) look(log *slog.Logger) {
	restored, err := l.restore()
	l.mu.Lock()
	known := l.lack
	l.lack = err
	l.mu.Unlock()
	switch {
	case err != nil && (known == nil || known.Error() != err.Error()):
		log.Error("the socket is gone and can't be made again, so tracers can't connect; it is tried every "+
			"second",
			"socket", l.config.Path, "error", err)
	case restored:
		log.Warn("the socket was gone and is made again; look for what removes it", "socket", l.config.Path)
	}
}

// Unreachable is why tracers can't find the socket, nil where they can.
func (l *Listener) Unreachable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lack
}
