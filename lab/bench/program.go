package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// daemonProgram returns a command line of the daemon's program: the named one, otherwise
// spanstatsd next to this program, otherwise the one in PATH.
func daemonProgram(named string, arguments ...string) (*exec.Cmd, error) {
	if named == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		named = filepath.Join(filepath.Dir(self), "spanstatsd")
		if _, err := os.Stat(named); err != nil {
			if named, err = exec.LookPath("spanstatsd"); err != nil {
				return nil, fmt.Errorf("find the daemon's program: it is neither next to %s nor in PATH; "+
					"name it with --program", self)
			}
		}
	}
	return process(named, arguments...), nil
}

// thisProgram returns a command line of this program.
func thisProgram(arguments ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return process(self, arguments...), nil
}

// process returns a command in its own process group, so that a terminal's signals to this
// process do not reach it.
func process(path string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(path, arguments...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}
