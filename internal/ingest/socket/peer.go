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

// Peer is the process at the other end of a connection, as reported by the kernel.
type Peer struct {
	UID       uint32
	PID       int32  // 0 if the process is in a PID namespace that is not visible from here
	Container string // container ID; "" if unknown
}

// PeerOf returns the process that opened a connection, and its container.
func PeerOf(socket *net.UnixConn) (Peer, error) {
	peer, err := Credentials(socket)
	if err == nil {
		peer.Container = ContainerOf(peer.PID)
	}
	return peer, err
}

// Credentials returns the process that opened a connection, without its container. The kernel stores the
// credentials at the time of the connect call, so a client cannot forge them.
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

// maxCgroupFile is the maximum number of bytes that are read of a cgroup file.
const maxCgroupFile = 64 << 10

// ContainerOf returns the ID of the container in which a process runs, or "" if /proc does not show it:
// processes of other pods, and of containers with their own PID namespace, are not visible. Clients in
// those can send their container ID in hello.
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

// containerName matches the names that container runtimes give to cgroups: 64 hexadecimal digits, 32 followed by the
// number of an ECS task, or the UUID-like names of Garden.
var containerName = regexp.MustCompile(
	`(?m)(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){4}|[0-9a-f]{64}|[0-9a-f]{32}-\d+)(?:\.scope)?$`)

var containerID = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){4}|[0-9a-f]{64}|[0-9a-f]{32}-\d+`)

// containerIn returns the container ID in the content of a cgroup file.
func containerIn(cgroup string) string {
	return containerID.FindString(containerName.FindString(cgroup))
}
