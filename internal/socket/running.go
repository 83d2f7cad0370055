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

// MarkRunning makes the file of this daemon, and removes those of daemons that died,
// which it counts.
func MarkRunning(path string) (r *Running, died int, err error) {
	prefix := path + ".running-"
	died, err = removeDead(prefix)
	if err != nil {
		return nil, died, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(prefix)+"*")
	if err != nil {
		return nil, died, fmt.Errorf("make running file: %w; check that the directory of --socket may be written", err)
	}
	if err := tryLock(file); err != nil {
		return nil, died, errors.Join(fmt.Errorf("lock running file: %w", err), os.Remove(file.Name()), file.Close())
	}
	return &Running{file}, died, nil
}

// Done says that the books were delivered.
func (r *Running) Done() error {
	return errors.Join(os.Remove(r.file.Name()), r.file.Close())
}

func tryLock(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// removeDead removes the files that no daemon locks.
func removeDead(prefix string) (died int, err error) {
	entries, err := os.ReadDir(filepath.Dir(prefix))
	if err != nil {
		return 0, fmt.Errorf("look for running files: %w", err)
	}
	for _, entry := range entries {
		name := filepath.Join(filepath.Dir(prefix), entry.Name())
		if !strings.HasPrefix(name, prefix) || !entry.Type().IsRegular() {
			continue
		}
		dead, err := removeIfDead(name)
		if err != nil {
			return died, err
		}
		if dead {
			died++
		}
	}
	return died, nil
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
