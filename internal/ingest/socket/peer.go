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

// PeerOf returns the process that opened a connection: its user, its ID and its container.
func PeerOf(socket *net.UnixConn) (Peer, error) {
	peer, err := ReadCredentials(socket)
	if err != nil {
		return Peer{}, err
	}
	peer.Container = ContainerOf(peer.PID)
	return peer, nil
}

// ReadCredentials returns the user ID and the process ID of the peer of a Unix socket. The kernel stores them when
// the process connects, so a client can't forge them. ReadCredentials does not set Peer.Container.
func ReadCredentials(socket *net.UnixConn) (Peer, error) {
	rawConn, err := socket.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("read peer credentials: %w", err)
	}
	var credentials *unix.Ucred
	var optionErr error
	err = rawConn.Control(func(fd uintptr) {
		credentials, optionErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, optionErr); err != nil {
		return Peer{}, fmt.Errorf("read peer credentials: %w", err)
	}
	return Peer{UID: credentials.Uid, PID: credentials.Pid}, nil
}

// maxCgroupFile is the maximum number of bytes that are read of a cgroup file.
const maxCgroupFile = 64 << 10

// ContainerOf returns the ID of the container in which the process pid runs. It returns "" if the process does not
// run in a container, or if /proc does not show the process, for example because it runs in another pod.
func ContainerOf(pid int32) string {
	if pid <= 0 {
		return ""
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}
	defer file.Close()
	cgroups, err := io.ReadAll(io.LimitReader(file, maxCgroupFile))
	if err != nil {
		return ""
	}
	return containerIn(string(cgroups))
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
