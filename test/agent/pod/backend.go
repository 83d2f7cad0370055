package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"

	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/tinylib/msgp/msgp"
	"google.golang.org/protobuf/proto"
)

// backend is a fake of Datadog's servers that counts the data sent by the agent.
type backend struct {
	address string
	server  *http.Server
	// For OpenTelemetry, the agent counts internal spans only if their parent arrived in another
	// request. Their number is random, so they are ignored.
	ends bool

	mu      sync.Mutex
	counted counts
	traces  int
	failure error // first error
}

// counts are counts from statistics.
type counts struct {
	Hits     int // hits of request spans
	Requests int // hits of server root spans
	Named    int // requests of the named interval, under their own name
	Masked   int // requests under a mask
}

func startBackend(ends bool) (*backend, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	b := &backend{address: "http://" + listener.Addr().String(), ends: ends}
	b.server = &http.Server{Handler: b}
	go func() { _ = b.server.Serve(listener) }() // returns after stop
	return b, nil
}

func (b *backend) stop() { _ = b.server.Close() }

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			b.note(counts{}, 0, fmt.Errorf("read request of the agent: %w", err))
			return
		}
		body = unpacked
	}
	switch r.URL.Path {
	case "/api/v0.2/stats":
		counted, err := countsOf(body, b.ends)
		b.note(counted, 0, err)
	case "/api/v0.2/traces":
		traces, err := tracesOf(body)
		b.note(counts{}, traces, err)
	default:
		http.NotFound(w, r)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (b *backend) note(c counts, traces int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := &b.counted
	*all = counts{all.Hits + c.Hits, all.Requests + c.Requests, all.Named + c.Named, all.Masked + c.Masked}
	b.traces += traces
	if b.failure == nil {
		b.failure = err
	}
}

// seen returns everything received so far.
func (b *backend) seen() (counted counts, traces int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counted, b.traces, b.failure
}

func countsOf(body io.Reader, ends bool) (c counts, err error) {
	var payload pb.StatsPayload
	if err := payload.DecodeMsg(msgp.NewReader(body)); err != nil {
		return c, fmt.Errorf("read statistics: %w", err)
	}
	for _, client := range payload.Stats {
		for _, bucket := range client.Stats {
			for _, g := range bucket.Stats {
				if !ends || g.SpanKind != "internal" {
					c.add(g)
				}
			}
		}
	}
	return c, nil
}

// ownName matches the resources of namedPath requests: a route, or a unique path.
var ownName = regexp.MustCompile(`^GET /named/(orders/.*|pages/[0-9]+)$`)

func (c *counts) add(g *pb.ClientGroupedStats) {
	root, hits := g.IsTraceRoot == pb.Trilean_TRUE, int(g.Hits)
	if root && g.SpanKind == "client" {
		return // the application is creating its database
	}
	c.Hits += hits
	if !root || g.SpanKind != "server" {
		return
	}
	c.Requests += hits
	switch {
	case ownName.MatchString(g.Resource):
		c.Named += hits
	case strings.HasPrefix(g.Resource, "GET /named/"):
		c.Masked += hits
	}
}

func tracesOf(body io.Reader) (traces int, err error) {
	bytes, err := io.ReadAll(body)
	if err != nil {
		return 0, fmt.Errorf("read traces: %w", err)
	}
	var payload pb.AgentPayload
	if err := proto.Unmarshal(bytes, &payload); err != nil {
		return 0, fmt.Errorf("read traces: %w", err)
	}
	for _, p := range payload.TracerPayloads {
		traces += len(p.Chunks)
	}
	for _, p := range payload.IdxTracerPayloads {
		traces += len(p.Chunks)
	}
	return traces, nil
}
