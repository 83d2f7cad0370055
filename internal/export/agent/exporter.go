package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/dump"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
)

// Config configures an Exporter.
type Config struct {
	URL            URL    // zero if there is no agent
	AutoDiscovered bool   // auto-discovered: it becomes a destination once it is found
	Version        string // of the daemon, for the User-Agent header
	DebugDir       string // directory for refused payloads; "" discards them
	Log            *slog.Logger
}

// Off reports whether there is no agent.
func (c *Config) Off() bool { return c.URL.IsZero() }

// Check returns an error if the configuration is invalid.
func (c *Config) Check() error {
	if c.Off() || c.DebugDir == "" {
		return nil
	}
	return dump.Check(c.DebugDir)
}

// Exporter sends statistics to one agent. See the package comment.
type Exporter struct {
	cfg       Config
	client    client
	encoder   *encoder
	discovery *discovery

	dumpMu sync.Mutex // held while a refused payload is written
	dumps  *dump.Dir  // nil if refused payloads are not saved
}

// New returns an exporter. It makes no request before the flusher runs its Watch function.
func New(cfg Config) (*Exporter, error) {
	if cfg.Off() {
		return nil, errors.New("configure agent: no URL; take one from ParseURL")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	e := newExporter(cfg, newHTTPClient(cfg.URL, cfg.Version))
	if cfg.DebugDir == "" {
		return e, nil
	}
	dumps, err := dump.Open(cfg.DebugDir)
	if err != nil {
		return nil, err
	}
	e.dumps = dumps
	return e, nil
}

// newExporter returns an exporter with any client, for tests.
func newExporter(cfg Config, c client) *Exporter {
	return &Exporter{
		cfg: cfg, client: c, encoder: newEncoder(),
		discovery: newDiscovery(cfg.Log, c, cfg.URL, cfg.AutoDiscovered),
	}
}

// Describe returns the destination for package export.
func (e *Exporter) Describe() export.Exporter {
	return export.Exporter{
		Name: Name, URL: e.cfg.URL.String(), Push: e,
		AcceptsStatistics: e.discovery.acceptsStatistics, PayloadLimit: e.discovery.payloadLimit,
		Discovered: e.discovery.isAgentKnown.Load, Watch: e.discovery.watch,
	}
}

// Name is the name of the agent in metrics, logs and status.
const Name = "agent"

// URL returns the agent's URL, without credentials.
func (e *Exporter) URL() string { return e.cfg.URL.String() }

// Version returns the version that the agent last reported, or "" if it has not reported any.
func (e *Exporter) Version() string { return e.discovery.version() }

// Features returns the agent's current features. The caller must not modify them.
func (e *Exporter) Features() Features { return e.discovery.features.load() }

// WatchFeatures returns the agent's current features, and a channel that is closed when they
// change.
func (e *Exporter) WatchFeatures() (Features, <-chan struct{}) { return e.discovery.features.watch() }

// Encode implements export.Push.
func (e *Exporter) Encode(c *export.Cycle, emit func(*export.Payload)) export.Encoded {
	return e.encoder.encode(c, emit)
}

// Deliver implements export.Push. It also updates the agent's features if the response shows that they have changed.
func (e *Exporter) Deliver(ctx context.Context, p *export.Payload) export.Attempt {
	response := e.client.deliver(ctx, p)
	e.discovery.noticeState(response.Header.Get("Datadog-Agent-State"))
	switch response.Outcome {
	case export.OutcomeNotWanted:
		e.discovery.disableStatistics()
	case export.OutcomeRefused:
		e.saveRefused(p, &response)
	}
	return response.Attempt
}

// saveRefused saves a payload that the agent refused, and the agent's response, to a file in the debug directory.
// It does nothing if no directory is configured, or if there was no response.
func (e *Exporter) saveRefused(p *export.Payload, response *post.Answer) {
	hasResponse := response.Code != 0
	if e.dumps == nil || !hasResponse {
		return
	}
	e.dumpMu.Lock()
	defer e.dumpMu.Unlock()
	file, err := e.dumps.Keep(&dump.Refusal{
		Time: time.Now(), Agent: e.cfg.URL.String(), Spans: p.Spans,
		RequestHeader: response.Sent, RequestBody: p.Body,
		Status: response.Status, ResponseHeader: response.Header, ResponseBody: response.Message,
	})
	switch {
	case err != nil:
		e.cfg.Log.Warn("can't save the rejected payload", "error", err)
	case file != "":
		e.cfg.Log.Info("saved a rejected payload; show it with: spanstatsd dump FILE", "file", file)
	}
}
