package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"go.uber.org/atomic"
)

// Config is what the server may use, and what it can't ask of the rooms.
type Config struct {
	Addr          string
	WebConfigFile string // TLS and basic auth, in the Prometheus ecosystem's format; "" for neither
	Debug         bool   // answer /debug/pprof
	Version       string
	FlushInterval time.Duration
	Limits        Limits
	Memory        memory.Budget // what the limits may come to
	MemoryLimit   memory.Limit
	Settings      []Setting // what the daemon runs with
	Sources       Sources
	Log           *slog.Logger
	LogLinesLost  func() uint64
	Died          func() int // daemons before this one that ended without their books
}

// Limits are the bounds that status shows beside what is used of them.
type Limits struct {
	Aggregates      int
	Origins         int
	Connections     int
	APMConnections  int
	OTLPConnections int
}

// Server answers /metrics, /livez, /readyz, /status and the page at /.
type Server struct {
	config   Config
	started  time.Time
	listener net.Listener
	http     *http.Server
	ready    atomic.Bool
	opened   atomic.Bool // was ready once
	served   chan struct{}
	failures failureLog

	connections connections
}

// New opens the address. Nothing is answered before Start.
func New(config Config) (*Server, error) {
	if config.LogLinesLost == nil {
		config.LogLinesLost = func() uint64 { return 0 }
	}
	if config.Died == nil {
		config.Died = func() int { return 0 }
	}
	if err := web.Validate(config.WebConfigFile); err != nil {
		return nil, fmt.Errorf("read web config file: %w; mend the file of --web-config-file, or leave the "+
			"flag out", err)
	}
	listener, err := net.Listen("tcp", config.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for http: %w; choose another --http-addr", err)
	}
	s := &Server{
		config: config, started: time.Now(), listener: listener, served: make(chan struct{}),
		failures: failureLog{logger: config.Log},
	}
	s.http = &http.Server{
		Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(config.Log.Handler(), slog.LevelDebug),
	}
	s.connections.attach(s.http)
	if config.Debug {
		s.http.WriteTimeout = 2 * time.Minute // for a profile of the usual 30 seconds, and a few more
	}
	return s, nil
}

// routes is who answers what.
func (s *Server) routes() *http.ServeMux {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		&collector{
			s.config.Sources, s.config.Version, s.config.Memory.Total, s.config.MemoryLimit,
			s.connections.refused, s.config.LogLinesLost, s.config.Died,
		},
		// This adds the CPU time of the garbage collector, which the metrics do not have by
		// default.
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{
			Matcher: regexp.MustCompile(`^/cpu/classes/gc/total:cpu-seconds$`),
		})),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry,
		promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorLog: &s.failures}))
	mux.HandleFunc("GET /livez", s.livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /status", s.status)
	addPage(mux)
	if s.config.Debug {
		// They cost CPU while they run and show memory.
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// Addr is where it listens, with the port that was chosen if none was given.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Start answers requests.
func (s *Server) Start() {
	go func() {
		defer close(s.served)
		if err := s.serve(); !errors.Is(err, http.ErrServerClosed) {
			s.config.Log.Error("serve http ended; restart the daemon to see its metrics again", "error", err)
		}
	}()
}

// SetReady says whether tracers may be sent here.
func (s *Server) SetReady(ready bool) {
	s.ready.Store(ready)
	if ready {
		s.opened.Store(true)
	}
}

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

// Alive is an error when a restart would help: when cycles are not sealed any more. An agent
// that is away is no such reason.
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
// that the daemon begins to stop, as long as they find the socket.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if why := s.notReady(); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// notReady is why tracers may not be sent here, "" where they may.
func (s *Server) notReady() string {
	switch {
	case s.ready.Load():
		return s.lack()
	case s.opened.Load():
		return "stopping: tracers are not accepted any more"
	}
	return "starting: tracers are not accepted yet"
}

// lack is why tracers can't find a socket of ours, "" where they can.
func (s *Server) lack() string {
	err := s.config.Sources.Ingest.Lack()
	if err == nil && s.config.Sources.APM != nil {
		err = s.config.Sources.APM.Lack()
	}
	if err == nil && s.config.Sources.OTLP != nil {
		err = s.config.Sources.OTLP.Lack()
	}
	if err == nil {
		return ""
	}
	return "the socket is gone and can't be made again: " + err.Error()
}
