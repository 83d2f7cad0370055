package conns

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// RawOf is the socket of a connection or a listener, nil where it has none.
func RawOf(of any) syscall.RawConn {
	if inKernel, ok := of.(syscall.Conn); ok {
		if raw, err := inKernel.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// happened asks the kernel which of some events a socket has, without waiting. One that is closed
// has none.
func happened(raw syscall.RawConn, events int16) (has int16) {
	if raw == nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { has = poll(fd, events) })
	return has
}

func poll(fd uintptr, events int16) (has int16) {
	asked := [1]unix.PollFd{{Fd: int32(fd), Events: events}}
	if n, err := unix.Poll(asked[:], 0); n > 0 && err == nil {
		has = asked[0].Revents
	}
	return has
}
