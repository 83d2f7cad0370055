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

// Config is what an Exporter needs to know.
type Config struct {
	URL       URL    // zero if there is no agent
	LookedFor bool   // it is auto-discovered: a destination once it is found
	Version   string // of the daemon, for the User-Agent header
	DebugDir  string // where refused payloads are kept; none if empty
	Log       *slog.Logger
}

// Off reports whether there is no agent.
func (c *Config) Off() bool { return c.URL.IsZero() }

// Check returns everything that is unusable.
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

	keeping sync.Mutex // guards dumps
	dumps   *dump.Dir  // nil if refused payloads are not kept
}

// New returns an exporter. The agent is not asked anything before a flusher watches it.
func New(cfg Config) (*Exporter, error) {
	if cfg.Off() {
		return nil, errors.New("configure agent: no URL; take one from ParseURL")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	e := newExporter(cfg, newHTTPClient(cfg.URL, cfg.Version))
	if cfg.DebugDir != "" {
		var err error
		if e.dumps, err = dump.Open(cfg.DebugDir); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// newExporter makes an exporter for any client, so that tests can bring their own.
func newExporter(cfg Config, c client) *Exporter {
	return &Exporter{
		cfg: cfg, client: c, encoder: newEncoder(),
		discovery: newDiscovery(cfg.Log, c, cfg.URL, cfg.LookedFor),
	}
}

// Describe returns the destination for package export.
func (e *Exporter) Describe() export.Exporter {
	return export.Exporter{
		Name: Name, URL: e.cfg.URL.String(), Push: e,
		Wants: e.discovery.wants, Discovered: e.discovery.joined.Load, Watch: e.discovery.watch,
	}
}

// Name is what the agent is called in metrics, the log and status.
const Name = "agent"

// URL is where the agent is, without credentials.
func (e *Exporter) URL() string { return e.cfg.URL.String() }

// Version is what the agent last called itself; "" before it was asked.
func (e *Exporter) Version() string { return e.discovery.version() }

// Features are what the agent wants at present. The caller does not write to them.
func (e *Exporter) Features() Features {
	now, _ := e.discovery.features.load()
	return now
}

// WatchFeatures returns the features and a channel that is closed as soon as they have changed.
func (e *Exporter) WatchFeatures() (Features, <-chan struct{}) { return e.discovery.features.load() }

// Encode implements export.Push.
func (e *Exporter) Encode(c *export.Cycle, emit func(*export.Payload)) export.Encoded {
	return e.encoder.encode(c, emit)
}

// Deliver implements export.Push.
func (e *Exporter) Deliver(ctx context.Context, p *export.Payload) export.Attempt {
	a := e.client.deliver(ctx, p)
	e.discovery.noticeState(a.Header.Get("Datadog-Agent-State"))
	switch a.Outcome {
	case export.OutcomeNotWanted:
		e.discovery.downgrade()
	case export.OutcomeRefused:
		e.keepRefused(p, &a)
	}
	return a.Attempt
}

// keepRefused writes a refused payload to the debug directory, if there is one. Its spans are lost anyway.
func (e *Exporter) keepRefused(p *export.Payload, a *post.Answer) {
	if e.dumps == nil || a.Code == 0 {
		return
	}
	e.keeping.Lock()
	defer e.keeping.Unlock()
	file, err := e.dumps.Keep(&dump.Refusal{
		Time: time.Now(), Agent: e.cfg.URL.String(), Spans: p.Spans, Sent: a.Sent, Body: p.Body,
		Status: a.Status, Answer: a.Header, Said: a.Said,
	})
	switch {
	case err != nil:
		e.cfg.Log.Warn("refused payload is not kept", "error", err)
	case file != "":
		e.cfg.Log.Info("refused payload is kept; look at it with: spanstatsd dump FILE", "file", file)
	}
}
