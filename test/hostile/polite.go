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

// polite is a sender that creates a request, sends it until it completes, and continues with the next
// one.
type polite struct {
	name    string
	address string // host:port, or a socket path
	speaks  format
	hurries *atomic.Bool // true while first attempts are abandoned after milliseconds; nil means never
	account *account
	ledger  *ledger
	do      func(r *http.Request, patience time.Duration) (*http.Response, error)
	hangUp  func() // makes the next request use a new connection
}

// format is an encoding and transport of spans.
type format struct {
	path, media string
	method      string
	encode      func(*spans) []byte
	isPacked    bool // compressed with gzip, separately for each attempt
	isGRPC      bool
	isOTLP      bool
}

// tracerFormats are the formats of the Datadog agent API.
var tracerFormats = map[string]format{
	"v04":   ofTracer("/v0.4/traces", http.MethodPut, (*spans).v04),
	"v05":   ofTracer("/v0.5/traces", http.MethodPost, (*spans).v05),
	"v07":   ofTracer("/v0.7/traces", http.MethodPost, (*spans).v07),
	"stats": ofTracer("/v0.6/stats", http.MethodPost, (*spans).statistics),
	"v10":   ofTracer("/v1.0/traces", http.MethodPut, (*spans).v10),
}

func ofTracer(path, method string, encode func(*spans) []byte) format {
	return format{path: path, method: method, media: "application/msgpack", encode: encode}
}

// sdkFormats are the OTLP formats, all with gzip.
var sdkFormats = map[string]format{
	"proto": ofSDK("/v1/traces", "application/x-protobuf", (*spans).protobuf),
	"json":  ofSDK("/v1/traces", "application/json", (*spans).json),
	"grpc": ofSDK("/opentelemetry.proto.collector.trace.v1.TraceService/Export", "application/grpc",
		(*spans).protobuf),
}

func ofSDK(path, media string, encode func(*spans) []byte) format {
	return format{
		path: path, method: http.MethodPost, media: media, encode: encode, isPacked: true, isOTLP: true,
		isGRPC: media == "application/grpc",
	}
}

// resources are the resource names of every polite sender. They recur, like those of an application.
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
	speaks := &http.Protocols{}
	speaks.SetHTTP1(!isGRPC)
	speaks.SetUnencryptedHTTP2(isGRPC)
	return &http.Client{Transport: &http.Transport{
		Protocols: speaks, DialContext: dialer(address), DisableCompression: true,
		IdleConnTimeout: 20 * time.Second,
	}}
}

// connect chooses the transport for requests.
func (p *polite) connect() {
	if p.hurries != nil && !p.speaks.isGRPC {
		h := &hurried{address: p.address}
		p.do, p.hangUp = h.do, h.hangUp
		return
	}
	c := newClient(p.address, p.speaks.isGRPC)
	p.do = func(r *http.Request, _ time.Duration) (*http.Response, error) { return c.Do(r) }
	p.hangUp = c.CloseIdleConnections
}

// run sends requests until stop is closed and completes the last one. It returns early if ctx is done.
func (p *polite) run(ctx context.Context, stop chan struct{}) {
	p.connect()
	defer p.hangUp()
	for number := uint64(0); ctx.Err() == nil; number++ {
		if rand.IntN(10) == 0 {
			p.hangUp()
		}
		request := newSpans(p.name, resources, 2+rand.IntN(40)*(1+rand.IntN(20)/19*9))
		what := request.counts()
		body := p.speaks.encode(&request)
		p.ledger.change(func() { p.account.handed.add(what) })
		p.deliver(ctx, number, body, tagOf(p.name, number, what))
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(50+rand.IntN(200)) * time.Millisecond):
		}
	}
}

// deliver sends a request until it completes.
func (p *polite) deliver(ctx context.Context, number uint64, body []byte, tag string) {
	for try := 0; ctx.Err() == nil; try++ {
		patience := 10 * time.Second
		if p.hurries != nil && p.hurries.Load() && try < 3 {
			patience = time.Duration(rand.IntN(20_000)) * time.Microsecond
		}
		end := p.try(ctx, body, tag, patience)
		p.ledger.change(func() {
			p.account.tries++
			if end == taken {
				p.account.taken[number] = true
			}
			if end != again {
				p.account.last = time.Now()
			}
		})
		if end != again {
			return
		}
		pause(ctx, time.Duration(min(try+1, 10)*20)*time.Millisecond)
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
	again   outcome = iota // retry
	taken                  // accepted
	refused                // refused permanently
)

// try makes one attempt to send a request.
func (p *polite) try(ctx context.Context, body []byte, tag string, patience time.Duration) outcome {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if p.speaks.isPacked {
		body = pack(body)
	}
	if p.speaks.isGRPC {
		body = append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(body))), body...)
	}
	request, err := http.NewRequestWithContext(ctx, p.speaks.method, "http://daemon"+p.speaks.path,
		bytes.NewReader(body))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	request.Header.Set("Content-Type", p.speaks.media)
	request.Header.Set(politeHeader, tag)
	switch {
	case p.speaks.isGRPC:
		request.Header.Set("Te", "trailers")
		request.Header.Set("Grpc-Encoding", "gzip")
	case p.speaks.isPacked:
		request.Header.Set("Content-Encoding", "gzip")
	case !p.speaks.isOTLP:
		request.Header.Set("X-Datadog-Trace-Count", "1")
		request.Header.Set("Datadog-Meta-Lang", "go")
	}
	answer, err := p.do(request, patience)
	if err != nil {
		return again
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20)); err != nil {
		return again
	}
	return p.speaks.judge(answer)
}

// judge interprets a response like the most persistent of the tracers and SDKs.
func (f *format) judge(answer *http.Response) outcome {
	if f.isGRPC && answer.StatusCode == http.StatusOK {
		status := answer.Trailer.Get("Grpc-Status")
		if status == "" {
			status = answer.Header.Get("Grpc-Status") // of an answer without a message
		}
		switch status {
		case "0":
			return taken
		case "1", "4", "8", "10", "11", "13", "14", "15", "": // as Python's and Java's
			return again
		}
		return refused
	}
	switch code := answer.StatusCode; {
	case code == http.StatusOK:
		return taken
	case !f.isOTLP, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return again
	}
	return refused
}

// pack compresses like the Python exporter: the gzip header contains the time, so each attempt has
// different bytes.
func pack(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.ModTime = time.Now()
	w.Comment = fmt.Sprint(rand.Uint64())
	_, _ = w.Write(body) // writes to memory can't fail
	_ = w.Close()
	return b.Bytes()
}
