package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// destination is the OTLP backend that a daemon forwards to. It accepts HTTP and gRPC on one port.
type destination struct {
	address string
	ledger  *ledger
	fault   atomic.Pointer[fault]

	mu     sync.Mutex
	server *http.Server // nil while not listening
}

// fault is a way to mishandle a forwarded request.
type fault struct {
	name   string
	status int    // respond with this status, count nothing
	grpc   string // same for gRPC
	raw    []byte // respond with these bytes and close
	kind   faultKind
}

type faultKind int

const (
	responds         faultKind = iota
	hangs                      // reads without responding
	closesUnread               // closes without reading
	acceptsAndCloses           // counts, and closes before the response
	isUnreachable              // does not listen
)

// faults lists the faults of a destination in the order in which they are tried.
var faults = []fault{
	{name: "responds with 503", status: 503, grpc: "14"},
	{name: "hangs", kind: hangs},
	{name: "responds with status 099", raw: []byte("HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n"), grpc: "99"},
	{name: "responds with 500", status: 500, grpc: "13"},
	{name: "closes without reading", kind: closesUnread},
	{name: "responds with 429", status: 429, grpc: "8"},
	{name: "responds with 101", raw: []byte("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n" +
		"Upgrade: x\r\n\r\n"), grpc: "x"},
	{name: "is unreachable", kind: isUnreachable},
	{name: "responds with 408", status: 408, grpc: "4"},
	{name: "responds with +20", raw: []byte("HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n"), grpc: ""},
	{name: "accepts without a response", kind: acceptsAndCloses},
	{name: "responds with 503 and a long body", status: 503, raw: response("503 Busy", 1<<20, ""), grpc: "14"},
	{name: "responds with half a header", raw: []byte("HTTP/1.1 200 OK\r\nContent-Le"), grpc: "2"},
	{name: "responds with a long header", raw: response("503 Busy", 0, "X-Long: "+strings.Repeat("x", 2<<20)), grpc: "10"},
	{name: "responds with another protocol", raw: []byte("220 mail ready\r\n"), grpc: "11"},
}

// response returns a complete response with a body of the given length.
func response(status string, length int, header string) []byte {
	if header != "" {
		header += "\r\n"
	}
	return fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s", status, length, header,
		strings.Repeat("x", length))
}

// String returns the name of the fault, also for nil.
func (f *fault) String() string {
	if f == nil {
		return "has no fault"
	}
	return f.name
}

var noFault = &fault{}

func newDestination(address string, l *ledger) (*destination, error) {
	d := &destination{address: address, ledger: l}
	d.fault.Store(noFault)
	return d, d.open()
}

// open starts to listen.
func (d *destination) open() error {
	listener, err := net.Listen("tcp", d.address)
	if err != nil {
		return fmt.Errorf("start destination: %w", err)
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: http.HandlerFunc(d.serve), Protocols: protocols, ReadHeaderTimeout: time.Minute,
	}
	d.mu.Lock()
	d.server = server
	d.mu.Unlock()
	go func() { _ = server.Serve(listener) }()
	return nil
}

// close closes the listener and all connections.
func (d *destination) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.server != nil {
		_ = d.server.Close()
	}
	d.server = nil
}

// setFault starts a fault that lasts until the next call; nil ends the current fault.
func (d *destination) setFault(f *fault) error {
	before := d.fault.Load()
	if f == nil {
		f = noFault
	}
	d.fault.Store(f)
	switch {
	case f.kind == isUnreachable:
		d.close()
	case before.kind == isUnreachable:
		return d.open()
	}
	return nil
}

func (d *destination) serve(w http.ResponseWriter, r *http.Request) {
	f := d.fault.Load()
	if f.kind == closesUnread {
		panic(http.ErrAbortHandler)
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	isGRPC := r.ProtoMajor == 2
	switch {
	case f.kind == hangs:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case f.kind == acceptsAndCloses:
		d.ledger.recordDelivery(r.Header)
		panic(http.ErrAbortHandler)
	case isGRPC && f != noFault:
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(http.StatusOK)
		w.Header().Set("Grpc-Status", f.grpc)
	case isGRPC:
		d.ledger.recordDelivery(r.Header)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = w.Write(make([]byte, 5)) // an empty gRPC message
		w.Header().Set("Grpc-Status", "0")
	case f.raw != nil:
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic("BUG: hijack: " + err.Error())
		}
		_, _ = conn.Write(f.raw)
		_ = conn.Close()
	case f.status != 0:
		http.Error(w, "injected fault", f.status)
	default:
		d.ledger.recordDelivery(r.Header)
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		if r.Header.Get("Content-Type") == "application/json" {
			_, _ = io.WriteString(w, "{}")
		}
	}
}
