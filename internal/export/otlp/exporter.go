package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
)

// Config configures an Exporter.
type Config struct {
	Variables
	Dialect    points.Dialect    // default: Spanmetrics
	Dimensions points.Dimensions // for Spanmetrics
	Instance   string            // collector.instance.id for Spanmetrics; optional
	Version    string            // of the daemon

	Temporality Temporality // default: Delta
	Bounds      []float64   // bounds of explicit buckets, in seconds; nil: exponential buckets
	Millis      bool        // send explicit buckets in milliseconds

	Exemplars *exemplars.Table // nil disables them
}

// Exporter sends metrics to an OTLP receiver. See the package comment.
type Exporter struct {
	config        Config
	poster        *post.Poster
	encoder       encoder
	probeInterval time.Duration // probe interval
	packer        *gzip.Writer  // nil if requests are not compressed
}

// probeInterval is the interval between probes of a receiver that does not answer.
const probeInterval = 10 * time.Second

// New returns an exporter. It opens no connection.
func New(c Config) (*Exporter, error) {
	if c.Endpoint.IsZero() {
		return nil, errors.New("configure OTLP: no endpoint; take one from ParseEndpoint")
	}
	secure, err := tlsConfig(&c.Variables)
	if err != nil {
		return nil, fmt.Errorf("configure OTLP: %w", err)
	}
	x := &Exporter{config: c, probeInterval: probeInterval, poster: post.New(post.Config{
		Name: "receiver", Endpoint: c.Endpoint, ContentType: "application/x-protobuf", EmptyBody: noMetrics,
		Answers: answers, Hint: hint(c.Endpoint), Header: c.Headers.all, Version: c.Version,
		TLS: secure, UsesProxies: true,
	})}
	x.LimitTotals(totals.Limits{Classic: bucketCount(c.Bounds)})
	if c.Compress {
		x.packer, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	}
	return x, nil
}

// LimitTotals sets the limits of running totals, if the exporter has any. It is called before the
// first cycle. Without it, all spans are in one series.
func (x *Exporter) LimitTotals(limits totals.Limits) { x.encoder = newEncoder(&x.config, limits) }

// bucketCount returns the number of buckets for the given bounds.
func bucketCount(bounds []float64) int {
	if bounds == nil {
		return 0
	}
	return len(bounds) + 1
}

// Describe returns the description of the destination for package export. Payloads are sent in
// order, because receivers reject or ignore points that are older than the last ones.
func (x *Exporter) Describe() export.Exporter {
	d := export.Exporter{
		Name: "otlp", URL: x.config.Endpoint.String(), Push: x,
		InOrder: true, Cumulative: x.config.Temporality == Cumulative,
		Bounds: x.config.Bounds, Watch: x.watch,
	}
	if d.Cumulative {
		d.LimitTotals = x.LimitTotals
	}
	return d
}

// Encode implements export.Push. A request can contain several origins. The limit applies to the
// uncompressed request, because receivers limit that.
func (x *Exporter) Encode(c *export.Cycle, emit func(*export.Payload)) export.Encoded {
	return x.encoder.encode(c, func(r *request) {
		p := &export.Payload{Spans: r.spans, Undelivered: r.undelivered}
		if x.packer != nil {
			p.Body = gzipped(x.packer, r.body)
		} else {
			p.Body = bytes.Clone(r.body)
		}
		emit(p)
	})
}

// Deliver implements export.Push.
func (x *Exporter) Deliver(ctx context.Context, p *export.Payload) export.Attempt {
	if x.config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.config.Timeout)
		defer cancel()
	}
	header := http.Header{}
	if x.packer != nil {
		header.Set("Content-Encoding", "gzip")
	}
	a := x.poster.Post(ctx, header, p.Body)
	if a.Outcome == export.OutcomeAccepted {
		readSuccess(&a, p, x.packer != nil)
	}
	return a.Attempt
}

// watch implements export.Exporter.Watch. It probes the receiver at the start, so that its state is
// known without traffic. When a payload is not answered, watch probes until the receiver answers
// again, and then ends the pause before the next attempt to deliver (SetRecovered).
func (x *Exporter) watch(ctx context.Context, link *export.Link) {
	for isFirst := true; ; isFirst = false {
		isReachable := x.isReachable(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case isReachable && isFirst:
			link.SetReachable()
		case isReachable:
			link.SetRecovered()
		default:
			link.SetSilent()
		}
		lost, retry := link.Lost(), (<-chan time.Time)(nil)
		if !isReachable {
			lost, retry = nil, time.After(x.probeInterval)
		}
		select {
		case <-ctx.Done():
		case <-lost:
		case <-retry:
		}
	}
}

// isReachable reports whether the receiver answers a probe in time.
func (x *Exporter) isReachable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, x.probeInterval)
	defer cancel()
	return x.poster.Probe(ctx) == nil
}
