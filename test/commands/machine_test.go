package commands

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// alone is set in the process that has its own network and its own /run.
const alone = "TEST_COMMANDS_ALONE"

// clone is the copy of the repository in which the commands run.
var clone string

func TestMain(m *testing.M) {
	if os.Getuid() == 0 && os.Getenv(alone) == "" {
		code, err := inMachineOfItsOwn()
		if err == nil {
			os.Exit(code)
		}
		fmt.Fprintf(os.Stderr, "\n*** NOT RUN: a separate network namespace, because %v ***\n\n", err)
	}
	os.Exit(testsInClone(m))
}

// inMachineOfItsOwn runs this program again in new namespaces.
func inMachineOfItsOwn() (code int, err error) {
	runtime.LockOSThread() // the child process ends with the thread that starts it
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), alone+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Unshareflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	err = cmd.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		return ended.ExitCode(), nil
	}
	return 0, err
}

func testsInClone(m *testing.M) int {
	if os.Getenv(alone) != "" {
		if err := furnish(); err != nil {
			fmt.Fprintln(os.Stderr, "create namespaces:", err)
			return 1
		}
	}
	dir, err := os.MkdirTemp("", "commands")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	clone = filepath.Join(dir, "spanstatsd")
	if err := errors.Join(os.Chmod(dir, 0o755), copyRepository(clone)); err != nil {
		fmt.Fprintln(os.Stderr, "copy the repository:", err)
		return 1
	}
	return m.Run()
}

// furnish brings up the loopback interface and empties /run in the new namespaces.
func furnish() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, loopback); err != nil {
		return fmt.Errorf("start lo: %w", err)
	}
	return unix.Mount("none", "/run", "tmpfs", 0, "mode=0755")
}

// copyRepository copies the files of this repository that are in git or would be added.
func copyRepository(to string) error {
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = repository
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for _, name := range strings.Split(strings.TrimRight(string(names), "\x00"), "\x00") {
		from, path := filepath.Join(repository, name), filepath.Join(to, name)
		info, err := os.Lstat(from)
		if errors.Is(err, os.ErrNotExist) { // deleted but not committed yet
			continue
		}
		if err != nil {
			return err
		}
		body, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, body, info.Mode().Perm()|0o444); err != nil {
			return err
		}
	}
	return nil
}
