package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// sender is a well-behaved sender. It creates a request, sends it until it completes, and continues
// with the next one.
type sender struct {
	name       string
	address    string // host:port, or a socket path
	format     format
	abandons   *atomic.Bool // true while the sender abandons first attempts after milliseconds; nil means never
	account    *account
	ledger     *ledger
	do         func(r *http.Request, timeout time.Duration) (*http.Response, error)
	disconnect func() // makes the next request use a new connection
}

// format is an encoding and transport of spans.
type format struct {
	path, media  string
	method       string
	encode       func(*spans) []byte
	isCompressed bool // compressed with gzip, separately for each attempt
	isGRPC       bool
	isOTLP       bool
}

// tracerFormats are the formats of the Datadog agent API.
var tracerFormats = map[string]format{
	"v04":   tracerFormat("/v0.4/traces", http.MethodPut, (*spans).v04),
	"v05":   tracerFormat("/v0.5/traces", http.MethodPost, (*spans).v05),
	"v07":   tracerFormat("/v0.7/traces", http.MethodPost, (*spans).v07),
	"stats": tracerFormat("/v0.6/stats", http.MethodPost, (*spans).statistics),
	"v10":   tracerFormat("/v1.0/traces", http.MethodPut, (*spans).v10),
}

func tracerFormat(path, method string, encode func(*spans) []byte) format {
	return format{path: path, method: method, media: "application/msgpack", encode: encode}
}

// sdkFormats are the OTLP formats, all with gzip.
var sdkFormats = map[string]format{
	"proto": sdkFormat("/v1/traces", "application/x-protobuf", (*spans).protobuf),
	"json":  sdkFormat("/v1/traces", "application/json", (*spans).json),
	"grpc": sdkFormat("/opentelemetry.proto.collector.trace.v1.TraceService/Export", "application/grpc",
		(*spans).protobuf),
}

func sdkFormat(path, media string, encode func(*spans) []byte) format {
	return format{
		path: path, method: http.MethodPost, media: media, encode: encode, isCompressed: true, isOTLP: true,
		isGRPC: media == "application/grpc",
	}
}

// resources are the resource names of every well-behaved sender. They recur, like those of an
// application.
var resources = []string{
	"GET /", "GET /cart", "POST /orders", "GET /orders/{id}", "SELECT orders", "UPDATE orders", "GET cache",
	"publish shipped",
}

// dialer returns a function that always dials address, a host:port or a socket path.
func dialer(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, networkOf(address), address)
	}
}

func networkOf(address string) string {
	if strings.HasPrefix(address, "/") {
		return "unix"
	}
	return "tcp"
}

func newClient(address string, isGRPC bool) *http.Client {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!isGRPC)
	protocols.SetUnencryptedHTTP2(isGRPC)
	return &http.Client{Transport: &http.Transport{
		Protocols: protocols, DialContext: dialer(address), DisableCompression: true,
		IdleConnTimeout: 20 * time.Second,
	}}
}

// connect chooses the transport for requests.
func (s *sender) connect() {
	if s.abandons != nil && !s.format.isGRPC {
		h := &impatientConn{address: s.address}
		s.do, s.disconnect = h.do, h.disconnect
		return
	}
	c := newClient(s.address, s.format.isGRPC)
	s.do = func(r *http.Request, _ time.Duration) (*http.Response, error) { return c.Do(r) }
	s.disconnect = c.CloseIdleConnections
}

// run sends requests until stop is closed and completes the last one. It returns early if ctx is done.
func (s *sender) run(ctx context.Context, stop chan struct{}) {
	s.connect()
	defer s.disconnect()
	for number := uint64(0); ctx.Err() == nil; number++ {
		if rand.IntN(10) == 0 {
			s.disconnect()
		}
		request := newSpans(s.name, resources, 2+rand.IntN(40)*(1+rand.IntN(20)/19*9))
		sum := request.counts()
		body := s.format.encode(&request)
		s.ledger.change(func() { s.account.sent.add(sum) })
		s.deliver(ctx, number, body, tagOf(s.name, number, sum))
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(50+rand.IntN(200)) * time.Millisecond):
		}
	}
}

// deliver sends a request until it completes.
func (s *sender) deliver(ctx context.Context, number uint64, body []byte, tag string) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		timeout := 10 * time.Second
		if s.abandons != nil && s.abandons.Load() && attempt < 3 {
			timeout = time.Duration(rand.IntN(20_000)) * time.Microsecond
		}
		result := s.attempt(ctx, body, tag, timeout)
		s.ledger.change(func() {
			s.account.attempts++
			if result == accepted {
				s.account.accepted[number] = true
			}
			if result != retry {
				s.account.last = time.Now()
			}
		})
		if result != retry {
			return
		}
		pause(ctx, time.Duration(min(attempt+1, 10)*20)*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// outcome is the meaning of a response to the sender.
type outcome int

const (
	retry outcome = iota
	accepted
	rejected
)

// attempt makes one attempt to send a request.
func (s *sender) attempt(ctx context.Context, body []byte, tag string, timeout time.Duration) outcome {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if s.format.isCompressed {
		body = compress(body)
	}
	if s.format.isGRPC {
		body = append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(body))), body...)
	}
	request, err := http.NewRequestWithContext(ctx, s.format.method, "http://daemon"+s.format.path,
		bytes.NewReader(body))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	request.Header.Set("Content-Type", s.format.media)
	request.Header.Set(senderHeader, tag)
	switch {
	case s.format.isGRPC:
		request.Header.Set("Te", "trailers")
		request.Header.Set("Grpc-Encoding", "gzip")
	case s.format.isCompressed:
		request.Header.Set("Content-Encoding", "gzip")
	case !s.format.isOTLP:
		request.Header.Set("X-Datadog-Trace-Count", "1")
		request.Header.Set("Datadog-Meta-Lang", "go")
	}
	response, err := s.do(request, timeout)
	if err != nil {
		return retry
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20)); err != nil {
		return retry
	}
	return s.format.classify(response)
}

// classify interprets a response like the most persistent of the tracers and SDKs.
func (f *format) classify(response *http.Response) outcome {
	if f.isGRPC && response.StatusCode == http.StatusOK {
		status := response.Trailer.Get("Grpc-Status")
		if status == "" {
			status = response.Header.Get("Grpc-Status") // a response without a message
		}
		switch status {
		case "0":
			return accepted
		case "1", "4", "8", "10", "11", "13", "14", "15", "": // like the exporters for Python and Java
			return retry
		}
		return rejected
	}
	switch code := response.StatusCode; {
	case code == http.StatusOK:
		return accepted
	case !f.isOTLP, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return retry
	}
	return rejected
}

// compress compresses like the Python exporter: the gzip header contains the time, so each attempt has
// different bytes.
func compress(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.ModTime = time.Now()
	w.Comment = fmt.Sprint(rand.Uint64())
	_, _ = w.Write(body) // writes to memory can't fail
	_ = w.Close()
	return b.Bytes()
}
