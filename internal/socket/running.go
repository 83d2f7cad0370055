package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Running is a file beside the socket for as long as its daemon has spans that are in no
// other's books. Its daemon holds a lock on it, which the kernel gives back however the
// daemon ends. So a file that nobody locks is of a daemon that ended without its books,
// and one that somebody locks is of a daemon that still delivers what it took.
type Running struct{ file *os.File }

// NewRunning makes the file of this daemon.
func NewRunning(path string) (*Running, error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(runningPrefix(path))+"*")
	if err != nil {
		return nil, fmt.Errorf("make running file: %w; check that the directory of --socket may be written",
			err)
	}
	if err := tryLock(file); err != nil {
		return nil, errors.Join(fmt.Errorf("lock running file: %w", err), os.Remove(file.Name()),
			file.Close())
	}
	return &Running{file}, nil
}

// runningPrefix is how the names of all running files of a socket begin, however its path is written.
func runningPrefix(path string) string { return filepath.Clean(path) + ".running-" }

// Done says that the books were delivered. Where the file is gone, with its directory
// perhaps, no daemon can take this one for one that died.
func (r *Running) Done() error {
	removed := os.Remove(r.file.Name())
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}
	return errors.Join(removed, r.file.Close())
}

func tryLock(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// RemoveDead removes the running files of daemons that died, and counts them. One that
// can't be looked at, such as another user's, is left and is no reason not to run: the
// error says of which nobody knows how its daemon ended.
func RemoveDead(path string) (died int, err error) {
	prefix := runningPrefix(path)
	entries, err := os.ReadDir(filepath.Dir(prefix))
	if err != nil {
		return 0, fmt.Errorf("look for running files: %w", err)
	}
	for _, entry := range entries {
		name := filepath.Join(filepath.Dir(prefix), entry.Name())
		if !strings.HasPrefix(name, prefix) || !entry.Type().IsRegular() {
			continue
		}
		dead, bad := removeIfDead(name)
		if dead {
			died++
		}
		err = errors.Join(err, bad)
	}
	return died, err
}

func removeIfDead(name string) (dead bool, err error) {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // its daemon is done by now
	}
	if err != nil {
		return false, fmt.Errorf("look at running file: %w; remove %s if no daemon runs", err, name)
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if tryLock(file) != nil {
		return false, nil
	}
	if err := os.Remove(name); errors.Is(err, fs.ErrNotExist) {
		return false, nil // it was done between the two
	} else if err != nil {
		return false, fmt.Errorf("remove running file: %w", err)
	}
	return true, nil
}
