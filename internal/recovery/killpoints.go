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
	killAt, _ = strconv.ParseInt(os.Getenv("KILL_AT_STORE"), 10, 64) // 0 if unset: no store has that number
)

// killPoint kills this process after the store whose number is in the environment. It exists only in
// test builds.
func killPoint() {
	if stores.Add(1) == killAt {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL) // it can't fail
		select {}
	}
}
