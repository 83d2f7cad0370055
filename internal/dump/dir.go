package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// Pause is the least time between two dumps.
	Pause = time.Minute
	// MaxFiles and MaxBytes are what a directory holds at most.
	MaxFiles = 16
	MaxBytes = 64 << 20

	prefix, suffix = "spanstatsd-refused-", ".http"
)

// Dir is where refused payloads are kept.
type Dir struct {
	path string
	last time.Time
}

// Check says why nothing can be kept in a directory, as far as looking at it shows.
func Check(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory", path)
	}
	if err != nil {
		return fmt.Errorf("check debug-dir: %w; give a directory that exists and that the daemon's user "+
			"may write to", err)
	}
	return nil
}

// Open makes sure that a file can be made in the directory, so that a mistake
// shows at start and not when the payload is gone.
func Open(path string) (*Dir, error) {
	probe, err := os.CreateTemp(path, ".spanstatsd-probe-*")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return nil, fmt.Errorf("open --debug-dir: %w; give a directory that exists and that the daemon's "+
			"user may write to", err)
	}
	return &Dir{path: path}, nil
}

// Keep writes a refusal, unless one was written within the Pause before it. It
// returns the file's name, empty if there is none.
func (d *Dir) Keep(r *Refusal) (file string, err error) {
	if !d.last.IsZero() && r.Time.Sub(d.last) < Pause {
		return "", nil
	}
	d.last = r.Time // a disk that is full is not asked more often than another
	encoded := r.encode()
	if err := d.makeRoom(int64(len(encoded))); err != nil {
		return "", fmt.Errorf("make room in --debug-dir: %w", err)
	}
	name := fmt.Sprintf("%s%s-%d%s", prefix, r.Time.UTC().Format("20060102T150405.000"), os.Getpid(), suffix)
	file = filepath.Join(d.path, name)
	if err := write(file, encoded); err != nil {
		return "", fmt.Errorf("keep refused payload: %w", err)
	}
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

// makeRoom removes the oldest files until one more fits.
func (d *Dir) makeRoom(bytes int64) error {
	files, err := filepath.Glob(filepath.Join(d.path, prefix+"*"+suffix))
	if err != nil {
		return err
	}
	sizes := make([]int64, len(files)) // oldest first: the names begin with the time
	for i, file := range files {
		if info, err := os.Lstat(file); err == nil {
			sizes[i] = info.Size()
			bytes += info.Size()
		}
	}
	for i := 0; i < len(files) && (len(files)-i >= MaxFiles || bytes > MaxBytes); i++ {
		if err := os.Remove(files[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		bytes -= sizes[i]
	}
	return nil
}
