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

// destination is the OTLP backend behind a daemon. It accepts HTTP and gRPC on one port.
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
	does   what
}

type what int

const (
	answers   what = iota
	hangs          // reads without responding
	breaksOff      // closes without reading
	takes          // counts, and closes before the response
	isGone         // does not listen
)

// faults lists the faults of a destination in the order in which they are tried.
var faults = []fault{
	{name: "answers 503", status: 503, grpc: "14"},
	{name: "hangs", does: hangs},
	{name: "answers status 099", raw: []byte("HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n"), grpc: "99"},
	{name: "answers 500", status: 500, grpc: "13"},
	{name: "breaks off", does: breaksOff},
	{name: "answers 429", status: 429, grpc: "8"},
	{name: "answers 101", raw: []byte("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n" +
		"Upgrade: x\r\n\r\n"), grpc: "x"},
	{name: "is gone", does: isGone},
	{name: "answers 408", status: 408, grpc: "4"},
	{name: "answers +20", raw: []byte("HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n"), grpc: ""},
	{name: "takes it and breaks off", does: takes},
	{name: "answers 503 with a long body", status: 503, raw: answer("503 Busy", 1<<20, ""), grpc: "14"},
	{name: "answers half", raw: []byte("HTTP/1.1 200 OK\r\nContent-Le"), grpc: "2"},
	{name: "answers a long head", raw: answer("503 Busy", 0, "X-Long: "+text(2<<20)), grpc: "10"},
	{name: "speaks no HTTP", raw: []byte("220 mail ready\r\n"), grpc: "11"},
}

func text(n int) string { return strings.Repeat("x", n) }

// answer returns a complete response with a body of the given length.
func answer(status string, length int, head string) []byte {
	if head != "" {
		head += "\r\n"
	}
	return fmt.Appendf(nil, "HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s", status, length, head,
		text(length))
}

// String returns the name of the fault, also for nil.
func (f *fault) String() string {
	if f == nil {
		return "is well"
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
		return fmt.Errorf("stand for a destination: %w", err)
	}
	speaks := &http.Protocols{}
	speaks.SetHTTP1(true)
	speaks.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler: http.HandlerFunc(d.serve), Protocols: speaks, ReadHeaderTimeout: time.Minute,
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

// misbehave starts a fault that lasts until the next call; nil ends the current fault.
func (d *destination) misbehave(f *fault) error {
	before := d.fault.Load()
	if f == nil {
		f = noFault
	}
	d.fault.Store(f)
	switch {
	case f.does == isGone:
		d.close()
	case before.does == isGone:
		return d.open()
	}
	return nil
}

func (d *destination) serve(w http.ResponseWriter, r *http.Request) {
	f := d.fault.Load()
	if f.does == breaksOff {
		panic(http.ErrAbortHandler)
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	isGRPC := r.ProtoMajor == 2
	switch {
	case f.does == hangs:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case f.does == takes:
		d.ledger.came(r.Header)
		panic(http.ErrAbortHandler)
	case isGRPC && f != noFault:
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		w.WriteHeader(http.StatusOK)
		w.Header().Set("Grpc-Status", f.grpc)
	case isGRPC:
		d.ledger.came(r.Header)
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
		http.Error(w, "a fault on purpose", f.status)
	default:
		d.ledger.came(r.Header)
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		if r.Header.Get("Content-Type") == "application/json" {
			_, _ = io.WriteString(w, "{}")
		}
	}
}
