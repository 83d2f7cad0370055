package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/dump"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/post"
)

// Config is what an Exporter needs to know.
type Config struct {
	URL       URL    // the zero one where there is no agent
	LookedFor bool   // nobody named it: it is a destination once it is found
	Version   string // of the daemon, for the User-Agent header
	DebugDir  string // where payloads that the agent refuses are kept; none if empty
	Log       *slog.Logger
}

// Off says whether there is no agent.
func (c *Config) Off() bool { return c.URL.IsZero() }

// Check says everything that is unusable.
func (c *Config) Check() error {
	if c.Off() || c.DebugDir == "" {
		return nil
	}
	return dump.Check(c.DebugDir)
}

// Exporter speaks to one agent. See the package comment.
type Exporter struct {
	*encoder
	*discovery
	cfg Config

	keeping sync.Mutex // guards dumps
	dumps   *dump.Dir  // nil where nothing is to be kept
}

// New returns an exporter. Nothing is asked of the agent before a flush watches it.
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

// newExporter speaks to any agent, so that tests can bring their own.
func newExporter(cfg Config, c client) *Exporter {
	found := newDiscovery(cfg.Log, c, cfg.URL, cfg.LookedFor)
	return &Exporter{encoder: newEncoder(), discovery: found, cfg: cfg}
}

// Name implements flush.Exporter.
func (e *Exporter) Name() string { return "agent" }

// URL implements flush.Exporter.
func (e *Exporter) URL() string { return e.cfg.URL.String() }

// Deliver implements flush.Exporter.
func (e *Exporter) Deliver(ctx context.Context, p *flush.Payload) flush.Attempt {
	a := e.client.deliver(ctx, p)
	e.noticeState(a.Header.Get("Datadog-Agent-State"))
	switch a.Outcome {
	case flush.OutcomeNotWanted:
		e.downgrade()
	case flush.OutcomeRefused:
		e.keepRefused(p, &a)
	}
	return a.Attempt
}

// keepRefused puts what the agent refused where a person can look at it, if the
// operator named a place. The spans are lost all the same.
func (e *Exporter) keepRefused(p *flush.Payload, a *post.Answer) {
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
