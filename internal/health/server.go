package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/atomic"
)

// Config is what the server may use.
type Config struct {
	Addr          string
	Version       string
	FlushInterval time.Duration
	Sources       Sources
	Log           *slog.Logger
}

// Server answers /metrics, /livez, /readyz and /status.
type Server struct {
	config   Config
	listener net.Listener
	http     *http.Server
	ready    atomic.Bool
	served   chan struct{}
}

// New opens the address. Nothing is answered before Start.
func New(config Config) (*Server, error) {
	listener, err := net.Listen("tcp", config.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for http: %w; choose another --http-addr", err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		&collector{config.Sources, config.Version},
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectorTime)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	s := &Server{config: config, listener: listener, served: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /livez", s.livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /status", s.status)
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// collectorTime is the CPU time of the garbage collector, which the others of
// Go's own do not say.
var collectorTime = collectors.GoRuntimeMetricsRule{
	Matcher: regexp.MustCompile(`^/cpu/classes/gc/total:cpu-seconds$`),
}

// Addr is where it listens, with the port that was chosen if none was given.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Start answers requests.
func (s *Server) Start() {
	go func() {
		defer close(s.served)
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.config.Log.Error("serve http ended; restart the daemon to see its metrics again", "error", err)
		}
	}()
}

// SetReady says whether tracers may be sent here.
func (s *Server) SetReady(ready bool) { s.ready.Store(ready) }

// Close finishes the requests that are being answered.
func (s *Server) Close(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	<-s.served
}

// missedSeals is how many flush intervals may pass without a seal before the
// daemon calls itself stuck.
const missedSeals = 6

// Alive is an error when a restart would help: when cycles are not sealed any
// more. That the agent is away is no such reason.
func (s *Server) Alive() error {
	last := s.config.Sources.Aggregate.Stats().LastSeal
	if stuck := time.Since(last); stuck > missedSeals*s.config.FlushInterval {
		return fmt.Errorf("no cycle was sealed for %s", stuck.Round(time.Second))
	}
	return nil
}

func (s *Server) livez(w http.ResponseWriter, _ *http.Request) {
	if err := s.Alive(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// readyz is true between the moment that tracers may connect and the moment
// that the daemon begins to stop.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if !s.ready.Load() {
		http.Error(w, "not accepting tracers", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}
