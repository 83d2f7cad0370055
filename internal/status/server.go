package status

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
	promexport "github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/conns"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
)

// Config configures a Server.
type Config struct {
	Addr          string
	Hosts         []string // additional host names of the page and the status
	WebConfigFile string   // TLS and basic auth in the format of the Prometheus exporter toolkit; optional
	Debug         bool     // serve /debug/pprof
	Version       string
	FlushInterval time.Duration
	Limits        Limits
	Memory        memory.Budget // maximum memory of the configuration
	MemoryLimit   memory.Limit
	Preset        string    // name of the defaults chosen for MemoryLimit
	Settings      []Setting // configuration of the daemon
	Sources       Sources
	ServesScrapes bool // serve scrapes of span statistics
	OnlyScrapes   bool // serve nothing else
	Log           *slog.Logger
	LogLinesLost  func() uint64
	Crashes       func() int             // number of previous daemons that crashed
	CrashLosses   func() recovery.Losses // spans lost in these crashes
}

// setDefaults replaces optional functions that are nil by functions that return 0.
func (c *Config) setDefaults() {
	if c.LogLinesLost == nil {
		c.LogLinesLost = func() uint64 { return 0 }
	}
	if c.Crashes == nil {
		c.Crashes = func() int { return 0 }
	}
	if c.CrashLosses == nil {
		c.CrashLosses = (*recovery.File)(nil).Losses
	}
}

// Limits are the limits shown with their current usage.
type Limits struct {
	Aggregates  int
	Origins     int
	Connections int
}

// Server serves /metrics, /livez, /readyz, /status and the page at /.
type Server struct {
	probes
	config   Config
	started  time.Time
	listener net.Listener
	http     *http.Server
	served   chan struct{}
	failures failureLog

	connections *conns.Limiter
}

// MaxConnections is the maximum number of connections. Probes, scrapes and browsers need only a few of them. A connection
// needs some tens of KiB.
const MaxConnections = 256

// New returns a server that listens at config.Addr. The server handles requests only after Start.
func New(config Config) (*Server, error) {
	config.setDefaults()
	if err := web.Validate(config.WebConfigFile); err != nil {
		return nil, fmt.Errorf("read web config file: %w; fix the file of --web-config-file, or remove the flag", err)
	}
	listener, err := config.listen()
	if err != nil {
		return nil, err
	}
	limiter := conns.NewLimiter(MaxConnections)
	limiter.NeverRejects = true // so that probes get through even if other clients fill all connections
	limitedListeners := &conns.Listeners{Limiter: limiter}
	s := &Server{
		config: config, started: time.Now(), served: make(chan struct{}),
		failures: newFailureLog(config.Log), connections: limiter,
		listener: limitedListeners.Limit(listener),
	}
	s.probes.sources = &s.config.Sources
	s.probes.interval = config.FlushInterval
	s.http = s.newHTTPServer()
	return s, nil
}

// listen opens a listener at c.Addr. An error names the flag for the address.
func (c *Config) listen() (net.Listener, error) {
	flag := "http-addr"
	if c.OnlyScrapes {
		flag = "prometheus-addr"
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w; choose another --%s", err, flag)
	}
	return listener, nil
}

// newHTTPServer returns the HTTP server for all paths, with timeouts.
func (s *Server) newHTTPServer() *http.Server {
	server := &http.Server{
		Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog:  slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
		ConnState: conns.ConnState,
	}
	if s.config.Debug {
		server.WriteTimeout = 2 * time.Minute // long enough for a CPU profile, which takes 30 seconds by default
	}
	return server
}

// routes returns a handler with the paths that the configuration enables. It serves the status, the
// page and profiles only for known host names, which protects them against DNS rebinding by a web
// page in a browser. Probes and scrapes are not restricted.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	if s.config.ServesScrapes && s.config.Sources.Prometheus != nil {
		mux.Handle("GET "+promexport.Path, s.config.Sources.Prometheus) // the metrics of spans
	}
	if s.config.OnlyScrapes {
		return mux
	}
	mux.Handle("GET /metrics", s.metricsHandler())
	mux.HandleFunc("GET /livez", s.livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	knownHosts := newHosts(s.config.Hosts)
	handleGuarded := func(pattern string, handler http.HandlerFunc) { mux.Handle(pattern, knownHosts.guard(handler)) }
	handleGuarded("GET /status", s.status)
	addPage(handleGuarded)
	if s.config.Debug {
		addProfiles(handleGuarded)
	}
	return mux
}

// addProfiles registers the handlers of profiles, which need CPU time, and reveal the content of memory.
func addProfiles(handle func(pattern string, handler http.HandlerFunc)) {
	handle("GET /debug/pprof/", pprof.Index)
	handle("GET /debug/pprof/cmdline", pprof.Cmdline)
	handle("GET /debug/pprof/profile", pprof.Profile)
	handle("GET /debug/pprof/symbol", pprof.Symbol)
	handle("GET /debug/pprof/trace", pprof.Trace)
}

// metricsHandler returns the handler of /metrics, with the metrics of the daemon, of the Go runtime
// and of the process.
func (s *Server) metricsHandler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		&collector{
			sources: s.config.Sources, version: s.config.Version, maxMemory: s.config.Memory.Total,
			limit: s.config.MemoryLimit, httpEvicted: s.connections.Evicted,
			logLinesLost: s.config.LogLinesLost, crashes: s.config.Crashes, crashLosses: s.config.CrashLosses,
		},
		// The CPU time of the garbage collector is not a default metric of the Go collector.
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{
			Matcher: regexp.MustCompile(`^/cpu/classes/gc/total:cpu-seconds$`),
		})),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(registry,
		promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorLog: &s.failures, EnableOpenMetrics: true})
}

// Addr returns the listen address, with the actual port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Start starts a goroutine that serves requests until Close.
func (s *Server) Start() {
	go func() {
		defer close(s.served)
		if err := s.serve(); !errors.Is(err, http.ErrServerClosed) {
			s.config.Log.Error("stopped serving --http-addr; restart the daemon to see its metrics again", "error", err)
		}
	}()
}

// Close closes the listener and waits until all requests are answered. If ctx ends before, it closes
// the remaining connections.
func (s *Server) Close(ctx context.Context) {
	if s.http.Shutdown(ctx) != nil {
		s.http.Close()
	}
	<-s.served
}

// Abandon closes the listener of a server that was not started.
func (s *Server) Abandon() { _ = s.listener.Close() }

// serve serves requests until Close, with TLS and authentication if --web-config-file is set.
func (s *Server) serve() error {
	if s.config.WebConfigFile == "" {
		return s.http.Serve(s.listener)
	}
	guarded := &guardedListener{
		Listener: s.listener, server: s.http, log: s.config.Log, file: s.config.WebConfigFile,
		unauthenticated: s.http.Handler,
	}
	defer guarded.closeProbeServer()
	return web.Serve(guarded, s.http, &web.FlagConfig{WebConfigFile: &s.config.WebConfigFile}, s.config.Log)
}

// Status returns the content of /status.
func (s *Server) Status() Status { return readStatus(&s.config, &s.probes, s.started) }

func (s *Server) status(w http.ResponseWriter, _ *http.Request) { s.failures.answerJSON(w, s.Status()) }
