package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"google.golang.org/grpc"
)

// receiver is the destination of relay and daemons: it accepts and counts all requests.
type receiver struct {
	requests, bytes atomic.Uint64
	address         string
	close           func()
}

func startReceiver(isGRPC bool) (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start receiver: %w", err)
	}
	r := &receiver{address: listener.Addr().String()}
	if isGRPC {
		server := grpc.NewServer(grpc.ForceServerCodec(bare{}), grpc.UnknownServiceHandler(r.serveStream))
		go func() { _ = server.Serve(listener) }() // ends at close
		r.close = server.Stop
	} else {
		server := &http.Server{Handler: r}
		go func() { _ = server.Serve(listener) }() // ends at close
		r.close = func() { _ = server.Close() }
	}
	return r, nil
}

func (r *receiver) take(bytes int) {
	r.bytes.Add(uint64(bytes))
	r.requests.Add(1)
}

// ServeHTTP responds with an empty message, as a Collector does.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	n, err := io.Copy(io.Discard, request.Body)
	if err != nil {
		return // the sender gets an error
	}
	w.Header().Set("Content-Type", request.Header.Get("Content-Type"))
	r.take(int(n))
}

// serveStream handles a gRPC call like ServeHTTP.
func (r *receiver) serveStream(_ any, call grpc.ServerStream) error {
	var message []byte
	if err := call.RecvMsg(&message); err != nil {
		return err
	}
	r.take(len(message))
	return call.SendMsg(&[]byte{})
}

// bare is a gRPC codec that does not encode or decode messages.
type bare struct{}

func (bare) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (bare) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

func (bare) Name() string { return "proto" }
