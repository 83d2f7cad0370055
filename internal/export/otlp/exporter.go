package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/post"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
)

// Config configures an Exporter.
type Config struct {
	Variables
	Dialect    points.Dialect    // Spanmetrics if empty
	Dimensions points.Dimensions // of Spanmetrics
	Instance   string            // collector.instance.id of Spanmetrics; none if empty
	Version    string            // of the daemon

	Temporality Temporality // Delta if empty
	Bounds      []float64   // of explicit buckets, which sketch.CheckBounds accepts; nil: exponential ones
	Millis      bool        // explicit buckets are sent in milliseconds, though Bounds are in seconds

	Exemplars *exemplars.Table // of spans whose traces are forwarded; nil: none
}

// Exporter sends metrics to an OTLP receiver. See the package comment.
type Exporter struct {
	config   Config
	poster   *post.Poster
	encoder  encoder
	askEvery time.Duration // a receiver that was silent
	packer   *gzip.Writer  // nil where requests are not compressed
}

// askEvery is how often a silent receiver is probed.
const askEvery = 10 * time.Second

// New returns an exporter. It opens no connection.
func New(c Config) (*Exporter, error) {
	if c.Endpoint.IsZero() {
		return nil, errors.New("configure OTLP: no endpoint; take one from ParseEndpoint")
	}
	secure, err := tlsConfig(&c.Variables)
	if err != nil {
		return nil, fmt.Errorf("configure OTLP: %w", err)
	}
	x := &Exporter{config: c, askEvery: askEvery, poster: post.New(post.Config{
		Who: "receiver", Endpoint: c.Endpoint, ContentType: "application/x-protobuf", Nothing: noMetrics,
		Answers: answers, Hint: hint(c.Endpoint), Header: c.Headers.all, Version: c.Version,
		TLS: secure, UsesProxies: true,
	})}
	x.LimitTotals(totals.Limits{Classic: buckets(c.Bounds)})
	if c.Compress {
		x.packer, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	}
	return x, nil
}

// LimitTotals sets how many running totals there may be, if there are any. It is called before the first
// cycle; without it one total has all spans.
func (x *Exporter) LimitTotals(limits totals.Limits) { x.encoder = newEncoder(&x.config, limits) }

// buckets is the number of buckets that bounds make.
func buckets(bounds []float64) int {
	if bounds == nil {
		return 0
	}
	return len(bounds) + 1
}

// Describe returns the destination for package export. Payloads go in order: a receiver that adds up deltas
// drops a window that is older than the last, and one that keeps running totals refuses it.
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

// Encode implements export.Push. Each request has several origins. The limit applies before compression,
// because receivers have a limit of their own for that.
func (x *Exporter) Encode(c *export.Cycle, emit func(*export.Payload)) export.Encoded {
	return x.encoder.encode(c, func(r *request) {
		p := &export.Payload{Spans: r.spans, Undelivered: r.undelivered}
		if x.packer != nil {
			p.Body = packed(x.packer, r.body)
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

// watch probes the receiver: at the start, so that a daemon without traffic knows whether it is there, and
// after a payload was not answered until it answers again, which ends the pause before the next try.
func (x *Exporter) watch(ctx context.Context, link *export.Link) {
	for isFirst := true; ; isFirst = false {
		isThere := x.isThere(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case isThere && isFirst:
			link.Answers()
		case isThere:
			link.Returned()
		default:
			link.Silent()
		}
		lost, again := link.Lost(), (<-chan time.Time)(nil)
		if !isThere {
			lost, again = nil, time.After(x.askEvery)
		}
		select {
		case <-ctx.Done():
		case <-lost:
		case <-again:
		}
	}
}

// isThere reports whether the receiver answers a probe in time.
func (x *Exporter) isThere(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, x.askEvery)
	defer cancel()
	return x.poster.Probe(ctx) == nil
}
