package recovery

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// start creates the recovery file of a daemon and expects the given number of crashed daemons.
func start(t *testing.T, path string, wantDied int) *File {
	t.Helper()
	r, unmapped, err := Create(path, 4)
	if err != nil || unmapped != nil {
		t.Fatal(err, unmapped)
	}
	r.finds(t, wantDied)
	if err := r.MarkReported(); err != nil {
		t.Error(err)
	}
	return r
}

func (f *File) finds(t *testing.T, wantDied int) {
	t.Helper()
	died, err := f.FindCrashed()
	if err != nil {
		t.Error(err)
	}
	if len(died) != wantDied {
		t.Errorf("%q died, want %d", died, wantDied)
	}
}

// kill releases a daemon's lock, as the kernel does.
func kill(t *testing.T, f *File) {
	t.Helper()
	if err := errors.Join(unix.Munmap(f.mapped), f.file.Close()); err != nil {
		t.Fatal(err)
	}
}

// If a daemon is killed before it has reported crashes, the next one reports these and its own.
func TestWhoIsKilledBeforeItHasSaidWhoDiedLeavesItToTheNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first := start(t, path, 0)
	first.Begin(1)
	first.Count(1, OTLP, 7)
	kill(t, first)
	reader, _, err := Create(path, 4)
	if err != nil {
		t.Fatal(err)
	}
	reader.finds(t, 1)
	kill(t, reader)
	next := start(t, path, 2)
	if lost := next.Losses().Receivers["otlp"].Lost; lost != 7 {
		t.Errorf("%d are lost, want 7", lost)
	}
	if err := errors.Join(next.MarkReported(), next.Remove()); err != nil {
		t.Error(err)
	}
	start(t, path, 0)
}

// A crashed daemon is counted once, by the next one. A daemon that shuts down, or is shutting down,
// is not counted.
func TestADaemonThatDiedIsCountedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	done := start(t, path, 0)
	if err := done.Remove(); err != nil {
		t.Error(err)
	}
	stopping := start(t, path, 0)
	killed := start(t, path, 0)
	kill(t, killed)
	next := start(t, path, 1)
	again := start(t, path, 0)
	for _, r := range []*File{stopping, next, again} {
		if err := r.Remove(); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 || !strings.HasSuffix(left[1].Name(), readSuffix) {
		t.Errorf("%v is left, want the lock, and what was read: %v", left, err)
	}
}

// Crashed daemons are found whatever the spelling of the socket's path.
func TestADaemonThatDiedIsCountedAtAnySpellingOfItsPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, path := range []string{
		dir + "/s.sock", dir + "//s.sock", dir + "/./s.sock", dir + "/../" + filepath.Base(dir) + "/s.sock",
		"s.sock", "./s.sock",
	} {
		kill(t, start(t, path, 0))
		if err := start(t, dir+"/s.sock", 1).Remove(); err != nil {
			t.Error(err)
		}
		kill(t, start(t, dir+"/s.sock", 0))
		if err := start(t, path, 1).Remove(); err != nil {
			t.Error(err)
		}
	}
}

// Recovery files of another socket in the same directory are ignored.
func TestAnotherSocketsFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	other := start(t, filepath.Join(dir, "spans"), 0)
	kill(t, other)
	ours := start(t, filepath.Join(dir, "s"), 0)
	if err := ours.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other.file.Name()); err != nil {
		t.Error(err)
	}
}

// Files that are no recovery files, or belong to another user, are ignored and do not prevent the
// start. A file that can't be read is named in the error.
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
	kill(t, start(t, filepath.Join(dir, "dead"), 0))
	died, unknown := removeDeadAsAnybody(t, path)
	if died != 0 || unknown == nil || strings.Count(unknown.Error(), prefix) != 1 ||
		!strings.Contains(unknown.Error(), unreadable) {
		t.Errorf("%d died, and unknown is %v, want only %s", died, unknown, unreadable)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 5 {
		t.Errorf("%v is left: %v", left, err)
	}
}

// removeDeadAsAnybody looks for crashed daemons with the rights of a user that can't read every
// file.
func removeDeadAsAnybody(t *testing.T, path string) (died int, unknown error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // the thread ends with the goroutine
			const nobody = 65534
			if err := unix.Setfsuid(nobody); err != nil {
				t.Error(err)
			}
		}
		found, err := (&predecessors{prefix: runningPrefix(path)}).find()
		died, unknown = len(found), err
	}()
	<-done
	return died, unknown
}

// If its directory was removed, a daemon leaves no file that looks like a crash.
func TestADirectoryThatIsGoneLeavesNoDeath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r := start(t, filepath.Join(dir, "s"), 0)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := r.Remove(); err != nil {
		t.Error(err)
	}
}
