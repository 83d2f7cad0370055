package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// daemonProgram is the daemon's program with these arguments: the one that is named, else
// the spanstatsd beside this program, else that of PATH.
func daemonProgram(named string, arguments ...string) (*exec.Cmd, error) {
	if named == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		named = filepath.Join(filepath.Dir(self), "spanstatsd")
		if _, err := os.Stat(named); err != nil {
			if named, err = exec.LookPath("spanstatsd"); err != nil {
				return nil, fmt.Errorf("find the daemon's program: it is neither beside %s nor in PATH; "+
					"name it with --program", self)
			}
		}
	}
	return process(named, arguments...), nil
}

// thisProgram is this program with other arguments.
func thisProgram(arguments ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return process(self, arguments...), nil
}

// process is one that a signal to this process does not reach.
func process(path string, arguments ...string) *exec.Cmd {
	cmd := exec.Command(path, arguments...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}
