package conns

import (
	"context"
	"net"
	"testing"
	"time"
)

// TestNobodyElseGetsIntoTheQueue of a socket that is about to be closed, where a connection
// would be thrown away.
func TestNobodyElseGetsIntoTheQueue(t *testing.T) {
	listener, err := ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	over, end := context.WithCancel(t.Context())
	end()
	StopTCP(over, listener)
	if conn, err := net.DialTimeout("tcp", listener.Addr().String(), 100*time.Millisecond); err == nil {
		conn.Close()
		t.Error("somebody got in")
	}
}
