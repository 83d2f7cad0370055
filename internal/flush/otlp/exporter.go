package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
)

// Config is what an Exporter needs to know.
type Config struct {
	Variables
	Dialect    Dialect    // Spanmetrics if empty
	Dimensions Dimensions // of Spanmetrics
	Instance   string     // collector.instance.id of Spanmetrics; none if empty
	Version    string     // of the daemon

	Temporality Temporality // Delta if empty

	Exemplars *exemplars.Table // of spans whose traces went on; nil: none
}

// Exporter sends metrics to an OTLP receiver. See the package comment.
type Exporter struct {
	client   *client
	encoder  *encoder
	config   Config
	askEvery time.Duration // a receiver that was silent
	packer   *gzip.Writer  // nil where requests are not compressed
}

// New makes an exporter. It opens no connection.
func New(c Config) (*Exporter, error) {
	if c.Endpoint.IsZero() {
		return nil, errors.New("configure OTLP: no endpoint; take one from ParseEndpoint")
	}
	secure, err := tlsConfig(&c.Variables)
	if err != nil {
		return nil, fmt.Errorf("configure OTLP: %w", err)
	}
	x := &Exporter{client: newClient(&c, secure, askPatience), config: c, askEvery: askEvery}
	x.LimitTotals(totals.Limits{})
	if c.Compress {
		x.packer, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	}
	return x, nil
}

// LimitTotals says how many running totals there may be, where there are any. It comes
// before the first cycle; without it one total has all spans.
func (x *Exporter) LimitTotals(limits totals.Limits) {
	ofTotals := &limits
	if !x.SendsTotals() {
		ofTotals = nil
	}
	x.encoder = newEncoder(x.config.dialect(), x.config.Version, ofTotals)
	x.encoder.exemplars = x.config.Exemplars
}

func (c *Config) dialect() dialect {
	if c.Dialect == Datadog {
		return datadog{}
	}
	return &spanmetrics{dimensions: c.Dimensions, instance: c.Instance}
}

// Name implements flush.Exporter, as do all below.
func (*Exporter) Name() string { return "otlp" }

// URL is the endpoint.
func (x *Exporter) URL() string { return x.client.endpoint.String() }

// InOrder is true: who adds up deltas drops a window that is older than the last, and who
// keeps running totals refuses one that is.
func (*Exporter) InOrder() bool { return true }

// SendsTotals is as configured.
func (x *Exporter) SendsTotals() bool { return x.config.Temporality == Cumulative }

// Wants is always true: OTLP has no way to ask.
func (*Exporter) Wants() (statistics bool, payloadBytes int) { return true, 0 }

// Encode makes requests of a cycle. Each is of several origins. The limit is of
// a request before it is compressed, because a receiver has one of its own for that.
func (x *Exporter) Encode(sealed *aggregate.Sealed, rows []flush.Row, limit int, emit func(*flush.Payload)) flush.Encoded {
	return x.encoder.encode(sealed, rows, limit, func(body []byte, spans uint64, said *totals.Said) {
		p := &flush.Payload{Spans: spans}
		if said != nil {
			p.Totals = said
		}
		if x.packer != nil {
			p.Body = packed(x.packer, body)
		} else {
			p.Body = bytes.Clone(body)
		}
		emit(p)
	})
}

// Deliver offers the receiver a payload once. Of running totals a second copy changes
// nothing, so one that may have arrived is sent again.
func (x *Exporter) Deliver(ctx context.Context, p *flush.Payload) flush.Attempt {
	a := x.client.deliver(ctx, p)
	if a.Outcome == flush.OutcomeUnknown && p.Totals != nil {
		a.Outcome = flush.OutcomeNotYet
	}
	return a
}
