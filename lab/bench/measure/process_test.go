package measure

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestProcess_CPUAndMemoryGrow: CPU time and memory of another process grow with its work.
func TestProcess_CPUAndMemoryGrow(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		spent, err := CPUOf(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if spent.All > 20*time.Millisecond {
			if spent.All > time.Since(start)+time.Second || spent.System > spent.All {
				t.Errorf("one busy thread had %s, %s of it in the kernel, within %s", spent.All, spent.System,
					time.Since(start))
			}
			break
		}
	}
	used, err := MemoryOf(os.Getpid())
	if err != nil || used.Resident == 0 || used.Peak < used.Resident {
		t.Errorf("this process has %+v, %v", used, err)
	}
	if _, err := CPUOf(1 << 22); err == nil {
		t.Error("a process that can't be has accounts")
	}
}
