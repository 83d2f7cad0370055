package dump

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// Pause is the least time between two dumps.
	Pause = time.Minute
	// MaxFiles is how many dumps a process writes at most.
	MaxFiles = 16

	prefix, suffix = "spanstatsd-refused-", ".http"
)

// Dir is a directory for refused payloads.
type Dir struct {
	path  string
	last  time.Time
	files int
}

// Check returns an error unless the path is a directory that may be written to.
func Check(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
	case !info.IsDir():
		err = fmt.Errorf("%s is no directory", path)
	default:
		err = unix.Access(path, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return fmt.Errorf("check debug-dir: %w; give --debug-dir a directory that exists and that the "+
			"daemon's user may write to", err)
	}
	return nil
}

// Open checks a directory for dumps.
func Open(path string) (*Dir, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	return &Dir{path: path}, nil
}

// Keep writes a refusal, unless one was written within the Pause before it or MaxFiles were written. It
// returns the file's name, empty if there is none.
func (d *Dir) Keep(r *Refusal) (file string, err error) {
	if d.files >= MaxFiles || !d.last.IsZero() && r.Time.Sub(d.last) < Pause {
		return "", nil
	}
	d.last = r.Time // a disk that is full is not asked more often than another
	name := fmt.Sprintf("%s%s-%d%s", prefix, r.Time.UTC().Format("20060102T150405.000"), os.Getpid(), suffix)
	file = filepath.Join(d.path, name)
	if err := write(file, r.encode()); err != nil {
		return "", fmt.Errorf("keep refused payload: %w", err)
	}
	d.files++
	return file, nil
}

// write makes a new file, whole or not at all.
func write(file string, encoded []byte) error {
	to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = to.Write(encoded)
	if err = errors.Join(err, to.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}
