//go:build prometheus || container

package deploy

import (
	"net"
	"testing"
)

// freeAddress returns an unused address on this machine.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
