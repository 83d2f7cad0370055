package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// receiver receives OTLP over both protocols and keeps the largest trace request.
type receiver struct {
	address string
	server  *http.Server

	mu     sync.Mutex
	path   string
	header http.Header
	body   []byte
}

func startReceiver() (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	speaks := &http.Protocols{}
	speaks.SetHTTP1(true)
	speaks.SetUnencryptedHTTP2(true)
	r := &receiver{address: listener.Addr().String()}
	r.server = &http.Server{Handler: r, Protocols: speaks}
	go func() { _ = r.server.Serve(listener) }() // returns after close
	return r, nil
}

func (r *receiver) close() { _ = r.server.Close() }

// ServeHTTP accepts every request.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.keep(request, body)
	media := request.Header.Get("Content-Type")
	w.Header().Set("Content-Type", media)
	switch {
	case strings.HasPrefix(media, "application/grpc"):
		_, _ = w.Write(make([]byte, 5)) // an empty gRPC message
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	case strings.HasPrefix(media, "application/json"):
		_, _ = io.WriteString(w, "{}")
	}
}

func (r *receiver) keep(request *http.Request, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(body) > len(r.body) {
		r.path, r.header, r.body = request.URL.Path, request.Header.Clone(), body
	}
}

// write writes the request as it was sent.
func (r *receiver) write(file string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.body) == 0 {
		return errors.New("write recording: the SDK sent no traces")
	}
	request, err := http.NewRequest(http.MethodPost, "http://localhost"+r.path, bytes.NewReader(r.body))
	if err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	request.Header = r.header
	var packed bytes.Buffer
	pack, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	pack.ModTime = time.Now() // benchmarks shift the span times by its distance from now
	if err := errors.Join(request.Write(pack), pack.Close(),
		os.WriteFile(file, packed.Bytes(), 0o644)); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	fmt.Printf("%s: %d bytes, %d packed\n", file, len(r.body), packed.Len())
	return nil
}
