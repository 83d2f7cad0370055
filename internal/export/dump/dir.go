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
	path        string
	lastAttempt time.Time // time of the last dump, even if writing it failed; zero if there was none
	files       int       // number of dumps written
}

// Check returns an error, with advice for the operator, if path is not a directory in which this process can create files.
func Check(path string) error {
	if err := checkWritableDir(path); err != nil {
		return fmt.Errorf("check debug-dir: %w; set --debug-dir to an existing directory that the "+
			"user of the daemon can write to", err)
	}
	return nil
}

// checkWritableDir returns an error unless path is a directory in which this process can create files.
func checkWritableDir(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}
	return unix.Access(path, unix.W_OK|unix.X_OK)
}

// Open checks that path is a writable directory, and returns it.
func Open(path string) (*Dir, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	return &Dir{path: path}, nil
}

// Keep writes a refused payload to a new file, and returns the path of the file. It writes nothing and returns "" if
// it last tried to write a file less than Pause ago, or if MaxFiles have been written.
func (d *Dir) Keep(r *Refusal) (file string, err error) {
	isFirst := d.lastAttempt.IsZero()
	isTooSoon := !isFirst && r.Time.Sub(d.lastAttempt) < Pause
	isFull := d.files >= MaxFiles
	if isTooSoon || isFull {
		return "", nil
	}
	d.lastAttempt = r.Time
	name := fmt.Sprintf("%s%s-%d%s", prefix, r.Time.UTC().Format("20060102T150405.000"), os.Getpid(), suffix)
	file = filepath.Join(d.path, name)
	if err := writeNewFile(file, r.encode()); err != nil {
		return "", fmt.Errorf("save rejected payload: %w", err)
	}
	d.files++
	return file, nil
}

// writeNewFile creates a file with the given content. It fails if the file exists. If the content
// can't be written completely, it removes the file.
func writeNewFile(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, writeErr := file.Write(content)
	closeErr := file.Close()
	if err := errors.Join(writeErr, closeErr); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
