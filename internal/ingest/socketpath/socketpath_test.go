package socketpath

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// directories sets the environment to two temporary directories, which contain the user's directories.
func directories(t *testing.T) (runtime, temporary string) {
	t.Helper()
	runtime, temporary = t.TempDir(), t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv("TMPDIR", temporary)
	return runtime, temporary
}

// A daemon listens on a path that clients try, whichever environment variables are set.
func TestPath_SameForDaemonAndClient(t *testing.T) {
	// Default comes first, but its directory exists only if a daemon is installed.
	if canCreateIn(filepath.Dir(Default)) {
		t.Skip("this machine has the directory of the default")
	}
	runtime, temporary := directories(t)
	inTemporary := fmt.Sprintf("%s/spanstatsd-%d/spans.sock", temporary, os.Getuid())
	for _, c := range []struct{ runtime, temporary, want string }{
		{runtime, temporary, runtime + "/spanstatsd/spans.sock"},
		{"", temporary, inTemporary},
		{"relative", temporary, inTemporary},
		{runtime + "/away", temporary, inTemporary},
		{"/" + strings.Repeat("x/", 50), temporary, inTemporary},
		{"", temporary + "/away", Default},
	} {
		t.Setenv("XDG_RUNTIME_DIR", c.runtime)
		t.Setenv("TMPDIR", c.temporary)
		got, isOwn := ForDaemon()
		if got != c.want || isOwn != (c.want != Default) {
			t.Errorf("%+v: a daemon listens at %s, as its default: %t", c, got, isOwn)
		}
		if isOwn {
			if err := os.Mkdir(filepath.Dir(got), 0o700); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
		}
		if !slices.Contains(ForClients(), got) {
			t.Errorf("%+v: a tracer looks at %v", c, ForClients())
		}
	}
}

// Clients ignore a directory that another user may write to, and a symbolic link.
func TestPath_WritableByOthersIsIgnored(t *testing.T) {
	runtime, _ := directories(t)
	dir := filepath.Join(runtime, "spanstatsd")
	for name, put := range map[string]func() error{
		"nothing":       func() error { return nil },
		"a file":        func() error { return os.WriteFile(dir, nil, 0o600) },
		"open to write": func() error { return first(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o720)) },
		"open to look":  func() error { return first(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o701)) },
		"a link": func() error {
			target := t.TempDir()
			return first(os.Chmod(target, 0o700), os.Symlink(target, dir))
		},
		"another's": func() error {
			if os.Getuid() != 0 {
				return os.WriteFile(dir, nil, 0o600)
			}
			return first(os.Mkdir(dir, 0o700), os.Chown(dir, 1, 1))
		},
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if got := ForClients(); !slices.Equal(got, []string{Default}) || CheckOwn(dir) == nil {
			t.Errorf("%s: a tracer looks at %v", name, got)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// first returns the first error.
func first(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}
