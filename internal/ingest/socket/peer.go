package socket

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"

	"golang.org/x/sys/unix"
)

// Peer is who holds the other end of a connection, as the kernel says.
type Peer struct {
	UID       uint32
	PID       int32  // 0 where the peer's process can't be seen from here
	Container string // "" where it can't be told
}

// PeerOf says who connected, and in which container that is.
func PeerOf(socket *net.UnixConn) (Peer, error) {
	peer, err := Credentials(socket)
	if err == nil {
		peer.Container = ContainerOf(peer.PID)
	}
	return peer, err
}

// Credentials asks the kernel who connected: who it was at the moment of the connect, and
// nobody can forge that. It reads no file.
func Credentials(socket *net.UnixConn) (Peer, error) {
	var cred *unix.Ucred
	var credErr error
	raw, err := socket.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		})
	}
	if err = errors.Join(err, credErr); err != nil {
		return Peer{}, fmt.Errorf("read peer credentials: %w", err)
	}
	return Peer{UID: cred.Uid, PID: cred.Pid}, nil
}

// maxCgroupFile bounds what is read of a process's cgroup file.
const maxCgroupFile = 64 << 10

// ContainerOf finds the container of a process where /proc shows it. Another
// pod's processes, and those of a container with its own view of processes, are
// not shown; their tracers can say the container in their hello.
func ContainerOf(pid int32) string {
	if pid <= 0 {
		return ""
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxCgroupFile))
	if err != nil {
		return ""
	}
	return containerIn(string(text))
}

// The names that container runtimes give to a cgroup: 64 hexadecimal digits,
// the same for a task with a number behind, or a UUID-like one of Garden.
var containerName = regexp.MustCompile(
	`(?m)(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){4}|[0-9a-f]{64}|[0-9a-f]{32}-\d+)(?:\.scope)?$`)

var containerID = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){4}|[0-9a-f]{64}|[0-9a-f]{32}-\d+`)

// containerIn finds a container's id in a cgroup file.
func containerIn(cgroup string) string {
	return containerID.FindString(containerName.FindString(cgroup))
}
