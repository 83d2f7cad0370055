package socket

import (
	"os"
	"path/filepath"
	"testing"
)

// mark makes the running file of a daemon.
func mark(t *testing.T, path string, wantDied int) *Running {
	t.Helper()
	r, died, err := MarkRunning(path)
	if err != nil {
		t.Fatal(err)
	}
	if died != wantDied {
		t.Errorf("%d daemons died, want %d", died, wantDied)
	}
	return r
}

// A daemon that ends without its books is counted once, by the next; one that delivers
// them, or is still about to, is not.
func TestADaemonThatDiedIsCountedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := mark(t, path, 0)
	if err := done.Done(); err != nil {
		t.Error(err)
	}
	stopping := mark(t, path, 0)
	killed := mark(t, path, 0)
	killed.file.Close() // as the kernel does
	next := mark(t, path, 1)
	again := mark(t, path, 0)
	for _, r := range []*Running{stopping, next, again} {
		if err := r.Done(); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%v is left besides the lock: %v", left, err)
	}
}

// The files of a daemon at another socket of the directory are left alone.
func TestAnotherSocketsFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	other := mark(t, filepath.Join(dir, "spans"), 0)
	other.file.Close()
	ours := mark(t, filepath.Join(dir, "s"), 0)
	if err := ours.Done(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other.file.Name()); err != nil {
		t.Error(err)
	}
}
