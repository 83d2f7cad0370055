package running

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file of so many bytes. All of them are taken now: a store into a page that a full
// disk has no room for would end the process.
func mapFile(file *os.File, bytes int) ([]byte, error) {
	fd := int(file.Fd())
	if err := unix.Fallocate(fd, 0, 0, int64(bytes)); err != nil {
		if _, err := file.Write(make([]byte, bytes)); err != nil {
			return nil, fmt.Errorf("fill running file: %w", err)
		}
	}
	memory, err := unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map running file: %w", err)
	}
	return memory, nil
}

// tryLock locks a file until its descriptor is closed and its mapping is gone.
func tryLock(file *os.File) error {
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}
