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
	// Pause is the minimum time between two dumps.
	Pause = time.Minute
	// MaxFiles is the maximum number of dumps per process.
	MaxFiles = 16

	prefix, suffix = "spanstatsd-refused-", ".http"
)

// Dir is a directory for refused payloads.
type Dir struct {
	path  string
	last  time.Time
	files int
}

// Check returns an error unless path is a writable directory.
func Check(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
	case !info.IsDir():
		err = fmt.Errorf("%s is not a directory", path)
	default:
		err = unix.Access(path, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return fmt.Errorf("check debug-dir: %w; give --debug-dir a directory that exists and that the "+
			"daemon's user may write to", err)
	}
	return nil
}

// Open checks that path is a writable directory, and returns it.
func Open(path string) (*Dir, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	return &Dir{path: path}, nil
}

// Keep writes a refusal to a file and returns its name. It returns "" if the last dump was less
// than Pause ago, or MaxFiles have been written.
func (d *Dir) Keep(r *Refusal) (file string, err error) {
	if d.files >= MaxFiles || !d.last.IsZero() && r.Time.Sub(d.last) < Pause {
		return "", nil
	}
	d.last = r.Time // also limits attempts to write to a full disk
	name := fmt.Sprintf("%s%s-%d%s", prefix, r.Time.UTC().Format("20060102T150405.000"), os.Getpid(), suffix)
	file = filepath.Join(d.path, name)
	if err := write(file, r.encode()); err != nil {
		return "", fmt.Errorf("save rejected payload: %w", err)
	}
	d.files++
	return file, nil
}

// write creates a file, and removes it if it can't be written completely.
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
