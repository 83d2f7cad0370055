package main

import (
	"net"
	"strconv"
	"testing"
)

func TestFreePort(t *testing.T) {
	const from = 23400
	first, err := freePort(from)
	if err != nil || first < from || first >= from+portsApart {
		t.Fatal(first, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(first))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if second, err := freePort(from); err != nil || second <= first || second >= from+portsApart {
		t.Error(first, second, err)
	}
	if port, err := freePort(1 << 17); err == nil {
		t.Errorf("%d is a port", port)
	}
}
