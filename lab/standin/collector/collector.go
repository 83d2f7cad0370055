package collector

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Config sets where the collector listens. The zero Config is any free port of the loopback
// interface.
type Config struct {
	Network   string        // "tcp" (default) or "unix"
	Address   string        // host:port, by default 127.0.0.1:0, or the path of a socket
	OnRequest func(Request) // called for each accepted request, concurrently
}

// Totals are the totals accepted so far.
type Totals struct {
	Requests uint64
	Probes   uint64 // requests without metrics, which check whether the collector is available
	Refused  uint64
	Counts

	Problems     []string // first maxProblems problems
	ProblemCount uint64
}

const maxProblems = 100

// maxBytes is the Collector's default limit on a request body, both compressed and
// decompressed.
const maxBytes = 20 << 20

// Collector is a running mock collector.
type Collector struct {
	cfg      Config
	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup

	mu     sync.Mutex // guards the next three fields
	totals Totals
	rows   Rows
	checks checks
}

// Start listens and serves until Close.
func Start(cfg Config) (*Collector, error) {
	if cfg.Network == "" {
		cfg.Network = "tcp"
	}
	if cfg.Network == "tcp" && cfg.Address == "" {
		cfg.Address = "127.0.0.1:0"
	}
	listener, err := net.Listen(cfg.Network, cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("start stand-in collector: %w", err)
	}
	c := &Collector{cfg: cfg, listener: listener}
	c.checks.problem = c.problem
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/metrics", c.serve)
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	c.serving.Go(func() { _ = c.server.Serve(listener) })
	return c, nil
}

// URL returns the URL that an exporter uses for this collector.
func (c *Collector) URL() string {
	if c.cfg.Network == "unix" {
		return "unix://" + c.cfg.Address
	}
	return "http://" + c.listener.Addr().String() + "/v1/metrics"
}

// Close stops the collector and closes its connections.
func (c *Collector) Close() error {
	err := c.server.Close()
	c.serving.Wait()
	if err != nil {
		return fmt.Errorf("close stand-in collector: %w", err)
	}
	return nil
}

// Totals returns the totals accepted so far.
func (c *Collector) Totals() Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.totals
	t.Problems = slices.Clone(t.Problems)
	return t
}

// problem records a problem. The caller holds the lock.
func (c *Collector) problem(format string, args ...any) {
	c.totals.ProblemCount++
	if len(c.totals.Problems) < maxProblems {
		c.totals.Problems = append(c.totals.Problems, fmt.Sprintf(format, args...))
	}
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	request, err := read(r)
	if err != nil {
		c.mu.Lock()
		c.totals.Refused++
		c.mu.Unlock()
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.accept(request)
	if c.cfg.OnRequest != nil {
		c.cfg.OnRequest(request)
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // response is an empty message
}

// Handler returns a receiver of OTLP metrics. It passes each request to receive, one at a time, and responds with the
// status code that receive returns. A request that cannot be decoded gets the status code 400.
func Handler(receive func(Request) (status int)) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := read(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		w.WriteHeader(receive(request))
	})
}

// read reads and decodes a request's body.
func read(r *http.Request) (Request, error) {
	if kind := r.Header.Get("Content-Type"); kind != "application/x-protobuf" {
		return nil, fmt.Errorf("content type %q", kind)
	}
	from := io.LimitReader(r.Body, maxBytes+1)
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(from)
		if err != nil {
			return nil, fmt.Errorf("read gzip: %w", err)
		}
		from = io.LimitReader(unpacked, maxBytes+1)
	default:
		return nil, fmt.Errorf("content encoding %q", encoding)
	}
	body, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if len(body) > maxBytes {
		return nil, errors.New("the body is too long")
	}
	return Decode(body)
}

func (c *Collector) accept(r Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if isProbe(r) {
		c.totals.Probes++
		return
	}
	c.totals.Requests++
	c.checks.request(r, func(service string, m *Metric, p, before *Point) {
		c.totals.add(c.rows.count(service, m, p, before))
	})
}

// isProbe reports whether a request has no metrics.
func isProbe(r Request) bool {
	return !slices.ContainsFunc(r, func(resource Resource) bool {
		return len(resource.Attributes) > 0 || len(resource.Scopes) > 0
	})
}
