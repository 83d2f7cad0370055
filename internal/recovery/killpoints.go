//go:build killpoints

package recovery

import (
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

var (
	stores    atomic.Int64
	killAt, _ = strconv.ParseInt(os.Getenv("KILL_AT_STORE"), 10, 64) // none is none
)

// stored kills this process behind the store whose number the environment says. Tests build it so.
func stored() {
	if stores.Add(1) == killAt {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL) // it can't fail
		select {}
	}
}
