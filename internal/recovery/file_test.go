package recovery

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// start creates the recovery file of a daemon, which reports the given number of crashed daemons.
func start(t *testing.T, path string, wantDied int) *File {
	t.Helper()
	f := reports(t, path, wantDied)
	f.predecessors.recordReports()
	return f
}

// reports is like start, but the daemon ends before it records that it has reported the crashes.
func reports(t *testing.T, path string, wantDied int) *File {
	t.Helper()
	f := create(t, path)
	before := f.Crashes() // files that were too many
	f.ReportCrashes()
	if died := f.Crashes() - before; died != wantDied {
		t.Errorf("%d died, want %d", died, wantDied)
	}
	return f
}

func create(t *testing.T, path string) *File {
	t.Helper()
	f, err := Create(Config{Path: path, Connections: 4, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// kill releases a daemon's locks, as the kernel does.
func kill(t *testing.T, f *File) {
	t.Helper()
	f.predecessors.release()
	if err := f.file.Close(); err != nil {
		t.Fatal(err)
	}
}

// pathOf returns the path of a daemon's file.
func pathOf(f *File) string { return f.predecessors.filePrefix + f.name }

// If a daemon is killed before it has reported crashes, the next one reports these and its own.
func TestCrash_UnreportedIsLeftToNext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first := start(t, path, 0)
	first.BeginCycle(1)
	first.Count(1, OTLP, 7)
	kill(t, first)
	kill(t, reports(t, path, 1))
	next := start(t, path, 2)
	if lost := next.Losses().Receivers["otlp"].Lost; lost != 7 {
		t.Errorf("%d are lost, want 7", lost)
	}
	if err := next.Remove(); err != nil {
		t.Error(err)
	}
	if err := start(t, path, 0).Remove(); err != nil {
		t.Error(err)
	}
}

// A crashed daemon is counted once, by the next one. A daemon that shuts down, or is shutting down,
// is not counted.
func TestCrash_CountedOnce(t *testing.T) {
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
	if err != nil || len(left) != 1 {
		t.Errorf("%v is left, want the lock: %v", left, err)
	}
}

// Crashed daemons are found whatever the spelling of the socket's path.
func TestCrash_FoundAtAnyPathSpelling(t *testing.T) {
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

func TestFile_IgnoresOtherSockets(t *testing.T) {
	dir := t.TempDir()
	other := start(t, filepath.Join(dir, "spans"), 0)
	kill(t, other)
	ours := start(t, filepath.Join(dir, "s"), 0)
	if err := ours.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(pathOf(other)); err != nil {
		t.Error(err)
	}
}

// Files that are no recovery files, or belong to another user, are ignored and do not prevent the
// start. A file that can't be read is named in the error.
func TestFile_IgnoresOtherUsers(t *testing.T) {
	dir, err := os.MkdirTemp("", "so")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	prefix := prefixOf(path)
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
	died, logged := reportUnprivileged(t, path)
	if died != 0 || strings.Count(logged, unreadable) == 0 || strings.Count(logged, "level=WARN") != 1 {
		t.Errorf("%d died, and the log is %s, want only %s", died, logged, unreadable)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 5 {
		t.Errorf("%v is left: %v", left, err)
	}
}

// reportUnprivileged searches twice for crashed daemons, as a user that can't read every file.
func reportUnprivileged(t *testing.T, path string) (died int, logged string) {
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
		var log bytes.Buffer
		p := predecessors{
			filePrefix: prefixOf(path), log: slog.New(slog.NewTextHandler(&log, nil)), warned: map[string]bool{},
		}
		p.report()
		p.report()
		died, logged = p.crashes(), log.String()
	}()
	<-done
	return died, logged
}

// If its directory was removed, a daemon leaves no file that looks like a crash.
func TestDirectory_RemovedIsNoCrash(t *testing.T) {
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

// Another process truncates the file of a running daemon, which continues. The next daemon has no outcomes from it.
func TestFile_TruncatedWhileItsDaemonRuns(t *testing.T) {
	for name, at := range map[string]uint64{"before the first cycle": 0, "before spans are received": 1} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			f := start(t, path, 0)
			s := NewSettlementTracker(f)
			truncate := func() {
				if err := os.Truncate(pathOf(f), 0); err != nil {
					t.Fatal(err)
				}
			}
			if at == 0 {
				truncate()
			}
			for cycle := range uint64(3) {
				f.BeginCycle(cycle)
				s.EnterCycle(cycle)
				if at > 0 && cycle == at {
					truncate() // the next store is to memory beyond the end of the file
				}
				s.Receive(7)
				f.Count(cycle, OTLP, 1)
			}
			f.Settle(0)
			f.Settle(1)
			if count := s.SettleBefore(2); count != 14 {
				t.Errorf("%d spans are settled, want 14", count)
			}
			kill(t, f)
			next := start(t, path, 1)
			defer func() { _ = next.Remove() }()
			if all := next.Losses(); all.Unknown != 1 || all.Sum() != (Loss{}) {
				t.Errorf("lost %+v", all)
			}
		})
	}
}

// A file that does not fit into its directory uses no space there, and its daemon runs without it. The
// limit on the size of a file stands for a full directory.
func TestFile_ThatDoesNotFit(t *testing.T) {
	dir := t.TempDir()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 64 << 10, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "s")
	f := start(t, path, 0)
	s := NewSettlementTracker(f)
	f.BeginCycle(0)
	s.EnterCycle(0)
	s.Receive(7)
	f.Settle(0)
	if count := s.SettleBefore(1); count != 7 || s.Token() != "" {
		t.Errorf("%d spans are settled, and the token is %q", count, s.Token())
	}
	if info, err := os.Stat(pathOf(f)); err != nil || info.Size() > 0 {
		t.Errorf("the file uses space: %v, %v", info, err)
	}
	kill(t, f)
	if err := start(t, path, 1).Remove(); err != nil {
		t.Error(err)
	}
}
