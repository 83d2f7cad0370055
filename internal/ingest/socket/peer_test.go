package socket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The peer of a connection within this process is this process.
func TestPeer_FromKernel(t *testing.T) {
	l := listenAt(t, filepath.Join(shortDir(t), "s"))
	defer l.Close()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	accepted, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	want := Peer{
		UID: uint32(os.Getuid()), PID: int32(os.Getpid()),
		Container: ContainerOf(int32(os.Getpid())),
	}
	if peer, err := PeerOf(accepted); err != nil || peer != want {
		t.Errorf("the peer is %+v, %v; want %+v", peer, err, want)
	}
}

func TestPeer_ContainerInCgroup(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for cgroup, want := range map[string]string{
		"0::/": "",
		"":     "",
		"0::/user.slice/user-0.slice/session-3.scope": "",
		"12:memory:/docker/" + id:                     id,
		"0::/kubepods.slice/kubepods-besteffort.slice/" +
			"kubepods-besteffort-pod2d3da189_6407_48e3_9ab6_78188d75e609.slice/" +
			"cri-containerd-" + id + ".scope\n": id,
		"1:name=systemd:/\n11:cpu:/kubepods/besteffort/pod3d274242-8ee0-11e9-a8a6-1e68d864ef1a/" + id +
			"\n": id,
		"9:cpu:/ecs/" + id[:32] + "-1234567890":          id[:32] + "-1234567890",
		"9:cpu:/garden/6f265890-5165-7fab-6b52-18d1":     "6f265890-5165-7fab-6b52-18d1",
		"9:cpu:/garden/6f265890-5165-7fab-6b52-18d1aaaa": "",
	} {
		if got := containerIn(cgroup); got != want {
			t.Errorf("%q: %q, want %q", cgroup, got, want)
		}
	}
}
