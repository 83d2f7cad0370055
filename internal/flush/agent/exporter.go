package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/dump"
	"github.com/spanstatsd/spanstatsd/internal/flush"
)

// Config is what an Exporter needs to know.
type Config struct {
	URL      URL    // the zero one where there is no agent
	Version  string // of the daemon, for the User-Agent header
	DebugDir string // where payloads that the agent refuses are kept; none if empty
	Log      *slog.Logger
}

// Off says whether there is no agent.
func (c *Config) Off() bool { return c.URL == URL{} }

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
	cfg    Config
	client client

	// What is known of the agent.
	features  *featureStore
	info      atomic.Pointer[info]   // as it was last read
	lastState atomic.Pointer[string] // of the agent, by an answer
	changed   chan struct{}          // holds a token when /info is to be read now
	contact   contact

	keeping sync.Mutex // guards dumps
	dumps   *dump.Dir  // nil where nothing is to be kept
}

// client is what is asked of the agent.
type client interface {
	// post offers a payload once.
	post(ctx context.Context, p *flush.Payload) attempt
	// info reads what the agent says of itself.
	info(ctx context.Context) (info, error)
}

// New returns an exporter. Nothing is asked of the agent before a flush watches it.
func New(cfg Config) (*Exporter, error) {
	if cfg.Off() {
		return nil, errors.New("configure agent: no URL; take one from ParseURL")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	e := newExporter(cfg, newHTTPAgent(cfg.URL, cfg.Version, askPatience))
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
	e := &Exporter{
		encoder: newEncoder(), cfg: cfg, client: c,
		features: newFeatureStore(DefaultFeatures()),
		changed:  make(chan struct{}, 1),
		contact:  contact{log: cfg.Log, url: cfg.URL},
	}
	e.info.Store(&info{})
	e.lastState.Store(new(string))
	return e
}

// Name implements flush.Exporter.
func (e *Exporter) Name() string { return "agent" }

// URL implements flush.Exporter.
func (e *Exporter) URL() string { return e.cfg.URL.String() }

// InOrder implements flush.Exporter. The agent adds up what it is sent, in any order.
func (e *Exporter) InOrder() bool { return false }

// SendsTotals implements flush.Exporter.
func (e *Exporter) SendsTotals() bool { return false }

// Wants implements flush.Exporter.
func (e *Exporter) Wants() (statistics bool, payloadBytes int) {
	now := e.Features()
	return now.Stats, now.MaxRequestBytes
}

// Deliver implements flush.Exporter.
func (e *Exporter) Deliver(ctx context.Context, p *flush.Payload) flush.Attempt {
	a := e.client.post(ctx, p)
	e.noticeState(a.state)
	switch a.Outcome {
	case flush.OutcomeNotWanted:
		e.downgrade()
	case flush.OutcomeRefused:
		e.keepRefused(p, a.refusal)
	}
	return a.Attempt
}

// keepRefused puts what the agent refused where a person can look at it, if the
// operator named a place. The spans are lost all the same.
func (e *Exporter) keepRefused(p *flush.Payload, refusal *dump.Refusal) {
	if e.dumps == nil || refusal == nil {
		return
	}
	e.keeping.Lock()
	defer e.keeping.Unlock()
	refusal.Time, refusal.Agent, refusal.Spans, refusal.Body = time.Now(), e.cfg.URL.String(), p.Spans, p.Body
	file, err := e.dumps.Keep(refusal)
	switch {
	case err != nil:
		e.cfg.Log.Warn("refused payload is not kept", "error", err)
	case file != "":
		e.cfg.Log.Info("refused payload is kept; look at it with: spanstatsd dump FILE", "file", file)
	}
}
