package socket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListen(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, dir string) (path string)
		message string // error message; "" for none
	}{
		{"nothing there", func(_ *testing.T, dir string) string { return filepath.Join(dir, "s") }, ""},
		{"stale socket", func(t *testing.T, dir string) string {
			l := listenAt(t, filepath.Join(dir, "s"))
			l.SetUnlinkOnClose(false)
			l.Close()
			return filepath.Join(dir, "s")
		}, ""},
		{"live socket", func(t *testing.T, dir string) string {
			listenAt(t, filepath.Join(dir, "s"))
			return filepath.Join(dir, "s")
		}, "another process listens"},
		{"a file", func(t *testing.T, dir string) string {
			if err := os.WriteFile(filepath.Join(dir, "s"), []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "s")
		}, "is not a socket"},
		{"a link to a stale socket", func(t *testing.T, dir string) string {
			l := listenAt(t, filepath.Join(dir, "target"))
			l.SetUnlinkOnClose(false)
			l.Close()
			if err := os.Symlink(filepath.Join(dir, "target"), filepath.Join(dir, "s")); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "s")
		}, "is not a socket"},
		{
			"no directory", func(_ *testing.T,
				dir string,
			) string {
				return filepath.Join(dir, "missing", "s")
			},
			"create the directory",
		},
		{"a file for a directory", func(t *testing.T, dir string) string {
			if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(dir, "f", "s")
		}, "not a directory"},
		{"too long", func(_ *testing.T, dir string) string {
			return filepath.Join(dir,
				strings.Repeat("s", 108))
		}, "shorter --socket"},
		{"empty", func(*testing.T, string) string { return "" }, "--socket"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := shortDir(t)
			path := test.prepare(t, dir)
			before := snapshotOf(path)
			l, err := Listen(Config{Path: path, Mode: 0o600})
			if test.message == "" {
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				info, err := os.Stat(path)
				if err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("the socket has %v, %v", info.Mode(), err)
				}
				conn, err := net.Dial("unix", path)
				if err != nil {
					t.Fatal(err)
				}
				conn.Close()
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.message) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("refused with %v", err)
			}
			if after := snapshotOf(path); after != before {
				t.Errorf("what was there is changed from %q to %q", before, after)
			}
		})
	}
}

func listenAt(t *testing.T, path string) *net.UnixListener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// shortDir returns a directory with a path that is short enough for the path of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ls")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// snapshotOf describes the file at a path, by type and content.
func snapshotOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	content, _ := os.ReadFile(path)
	return info.Mode().String() + string(content)
}

func TestLock_KeepsSecondDaemonOff(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	first, err := Listen(Config{Path: path, Mode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	// The first daemon's socket file is removed, but the daemon still runs.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Config{Path: path, Mode: 0o600}); err == nil ||
		!strings.Contains(err.Error(), "holds its lock") {
		t.Errorf("a second daemon got %v", err)
	}
	first.Close()
	second, err := Listen(Config{Path: path, Mode: 0o600})
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	target := path + ".target"
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path+".lock"); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Config{Path: path, Mode: 0o600}); err == nil {
		t.Error("a lock that is a link was followed")
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("a file was made through a link")
	}
}

func TestDirectory_CreatedWithMode(t *testing.T) {
	dir := filepath.Join(shortDir(t), "made")
	owner := &Owner{UID: os.Getuid(), GID: os.Getgid()}
	l, err := Listen(Config{
		Path: filepath.Join(dir, "s"), Mode: 0o606, Owner: owner, DirectoryMode: 0o750, DirectoryOwner: owner,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]os.FileMode{dir: 0o750, filepath.Join(dir, "s"): 0o606} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	if _, err := net.Dial("unix", filepath.Join(dir, "s")); err != nil {
		t.Error(err)
	}
}
