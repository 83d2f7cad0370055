package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// listener is an HTTP server whose address stays the same while it is unreachable.
type listener struct {
	mu      sync.Mutex
	address string
	handler http.Handler
	server  *http.Server
}

func (l *listener) url() string { return "http://" + l.address }

func (l *listener) restarted() {}

func (l *listener) close() { _ = l.setUnreachable(true) } // closing can't fail

// listen starts the server at a free port.
func (l *listener) listen(handler http.Handler) error {
	l.address, l.handler = "127.0.0.1:0", handler
	return l.setUnreachable(false)
}

// setUnreachable closes the listener and all connections, or listens again.
func (l *listener) setUnreachable(isUnreachable bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if isUnreachable {
		_ = l.server.Close() // connections in use are closed, too
		return nil
	}
	socket, err := net.Listen("tcp", l.address)
	if err != nil {
		return fmt.Errorf("listen for a tool's output: %w", err)
	}
	l.address = socket.Addr().String()
	server := &http.Server{Handler: l.handler, ReadHeaderTimeout: 10 * time.Second}
	l.server = server
	go func() { _ = server.Serve(socket) }() // returns after Close
	return nil
}

// decompressed returns the body of a request without its compression.
func decompressed(r *http.Request) (io.Reader, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return r.Body, nil
	}
	return gzip.NewReader(r.Body)
}

// lastPort is the last port that freePort has returned. Ports are below those that the kernel gives to connections, and depend on
// the process, so that several judges can run.
var lastPort atomic.Int32

func init() { lastPort.Store(int32(15_000 + os.Getpid()%10_000)) }

// freePort returns a port at which nothing listens, another one at each call.
func freePort() (int, error) {
	const attempts = 1000
	var err error
	for range attempts {
		port := int(lastPort.Add(1))
		var socket net.Listener
		if socket, err = net.Listen("tcp", local(port)); err == nil {
			return port, socket.Close()
		}
	}
	return 0, fmt.Errorf("find a free port: %w", err)
}
