package socket

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mark makes the running file of a daemon.
func mark(t *testing.T, path string, wantDied int) *Running {
	t.Helper()
	r, err := NewRunning(path)
	if err != nil {
		t.Fatal(err)
	}
	died, err := RemoveDead(path)
	if err != nil {
		t.Error(err)
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

// A daemon that died is counted however the path of its socket is written.
func TestADaemonThatDiedIsCountedAtAnySpellingOfItsPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, path := range []string{
		dir + "/s.sock", dir + "//s.sock", dir + "/./s.sock", dir + "/../" + filepath.Base(dir) + "/s.sock",
		"s.sock", "./s.sock",
	} {
		mark(t, path, 0).file.Close() // as the kernel does
		if err := mark(t, dir+"/s.sock", 1).Done(); err != nil {
			t.Error(err)
		}
		mark(t, dir+"/s.sock", 0).file.Close()
		if err := mark(t, path, 1).Done(); err != nil {
			t.Error(err)
		}
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

// Files beside the socket that are not ours, or another user's, are left alone and keep no daemon
// from running; one that can't be looked at is named.
func TestAnotherUsersFileKeepsNoDaemonFromRunning(t *testing.T) {
	dir, err := os.MkdirTemp("", "so")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	prefix := runningPrefix(path)
	unreadable := prefix + "other"
	for _, err := range []error{
		os.WriteFile(unreadable, nil, 0o000), os.Mkdir(prefix+"directory", 0o700),
		unix.Mkfifo(prefix+"fifo", 0o600), os.Symlink("/dev/null", prefix+"link"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	mark(t, filepath.Join(dir, "dead"), 0).file.Close()
	died, unknown := removeDeadAsAnybody(t, path)
	if died != 0 || unknown == nil || strings.Count(unknown.Error(), prefix) != 1 ||
		!strings.Contains(unknown.Error(), unreadable) {
		t.Errorf("%d died, and unknown is %v, want only %s", died, unknown, unreadable)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 5 {
		t.Errorf("%v is left: %v", left, err)
	}
}

// removeDeadAsAnybody looks for the dead as a user who may not read every file.
func removeDeadAsAnybody(t *testing.T, path string) (died int, unknown error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // and its thread ends with the goroutine
			const nobody = 65534
			if err := unix.Setfsuid(nobody); err != nil {
				t.Error(err)
			}
		}
		died, unknown = RemoveDead(path)
	}()
	<-done
	return died, unknown
}

// A daemon whose directory was removed has left nothing that could be taken for a death.
func TestADirectoryThatIsGoneLeavesNoDeath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := mark(t, filepath.Join(dir, "s"), 0)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := r.Done(); err != nil {
		t.Error(err)
	}
}
