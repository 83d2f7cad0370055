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
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
)

// Config configures an Exporter.
type Config struct {
	Variables
	Dialect    points.Dialect    // default: Spanmetrics
	Dimensions points.Dimensions // dimensions for Spanmetrics
	Instance   string            // collector.instance.id for Spanmetrics; optional
	Version    string            // of the daemon

	Temporality Temporality // default: Delta
	Bounds      []float64   // bounds of explicit buckets, in seconds; nil: exponential buckets
	Millis      bool        // send explicit buckets in milliseconds

	Exemplars  *exemplars.Table  // nil disables them
	Measures   []measure.Measure // attributes of spans whose values are counted; optional
	Objectives []string          // names of objectives

	Graph    *points.ServiceGraph // nil disables the service graph
	MaxEdges int                  // maximum number of edges of the graph
}

// Exporter sends metrics to an OTLP receiver. See the package comment.
type Exporter struct {
	config        Config
	poster        *post.Poster
	encoder       encoder
	metrics       int           // number of metrics
	bounds        []float64     // bounds of the explicit buckets of all metrics
	graph         *graphEncoder // nil without a service graph
	probeInterval time.Duration // probe interval
	compressor    *gzip.Writer  // nil if requests are not compressed
}

// probeInterval is the interval between probes of a receiver that does not answer.
const probeInterval = 10 * time.Second

// New returns an exporter. It opens no connection.
func New(c Config) (*Exporter, error) {
	if c.Endpoint.IsZero() {
		return nil, errors.New("configure OTLP: no endpoint; take one from ParseEndpoint")
	}
	tlsConfig, err := newTLSConfig(&c.Variables)
	if err != nil {
		return nil, fmt.Errorf("configure OTLP: %w", err)
	}
	x := &Exporter{config: c, probeInterval: probeInterval, poster: post.New(post.Config{
		Name: "receiver", Endpoint: c.Endpoint, ContentType: "application/x-protobuf", EmptyBody: noMetrics,
		Answers: answers, Hint: hint(c.Endpoint), Header: c.Headers.all, Version: c.Version,
		TLS: tlsConfig, UsesProxies: true,
	})}
	reader := points.NewReader(c.pointsConfig())
	x.metrics, x.bounds = len(reader.Metrics()), reader.Bounds()
	x.LimitTotals(totals.Limits{})
	if c.Compress {
		x.compressor, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	}
	return x, nil
}

// LimitTotals sets the limits of running totals, if the exporter has any. It is called before the
// first cycle. Without it, all spans are in one series.
func (x *Exporter) LimitTotals(limits totals.Limits) {
	x.encoder = newEncoder(&x.config, limits)
	if c := &x.config; c.Graph != nil {
		x.graph = newGraphEncoder(c, points.EdgeLimits(limits, c.MaxEdges))
	}
}

// Describe returns the description of the destination for package export. Payloads are sent in
// order, because receivers reject or ignore points that are older than the last ones.
func (x *Exporter) Describe() export.Exporter {
	isCumulative := x.config.Temporality == Cumulative
	hasGraph := x.config.Graph != nil
	d := export.Exporter{
		Name:          "otlp",
		URL:           x.config.Endpoint.String(),
		Push:          x,
		InOrder:       true,
		Cumulative:    isCumulative,
		Bounds:        x.bounds,
		Metrics:       x.metrics,
		HasValues:     len(x.config.Measures) > 0,
		HasObjectives: len(x.config.Objectives) > 0,
		Watch:         x.watch,
	}
	if hasGraph {
		d.GraphMemory = x.graphMemory
	}
	hasTotals := isCumulative || hasGraph // the metrics of the service graph are always cumulative
	if hasTotals {
		d.LimitTotals = x.LimitTotals
	}
	return d
}

// graphMemory returns the maximum memory of the service graph, given the limits for series.
func (x *Exporter) graphMemory(l totals.Limits) int {
	edges := points.EdgeLimits(l, x.config.MaxEdges)
	return edges.Memory()
}

// Encode implements export.Push. It encodes the counts of one export interval as payloads, followed by the service
// graph, if there is one, and passes each payload to emit. Before compression, no payload is longer than c.Limit.
func (x *Exporter) Encode(c *export.Cycle, emit func(*export.Payload)) export.Encoded {
	encoded := x.encoder.encode(c, func(r *request) {
		emit(&export.Payload{Body: x.bodyOf(r), Spans: r.spans, Values: r.values, Undelivered: r.undelivered})
	})
	if x.graph != nil {
		edges := x.encodeGraph(c, emit)
		encoded.Totals.Edges = edges.Series
		encoded.Totals.EdgesOverflowed = edges.Overflowed
	}
	return encoded
}

// encodeGraph encodes the service graph as payloads, passes each payload to emit, and returns the counts of edges.
func (x *Exporter) encodeGraph(c *export.Cycle, emit func(*export.Payload)) totals.Counts {
	x.graph.encode(c, func(r *request) {
		emit(&export.Payload{Body: x.bodyOf(r), IsGraph: true})
	})
	return x.graph.counts()
}

// bodyOf returns a copy of the body of r, compressed if that is configured.
func (x *Exporter) bodyOf(r *request) []byte {
	if x.compressor != nil {
		return compress(x.compressor, r.body)
	}
	return bytes.Clone(r.body)
}

// Deliver implements export.Push. In addition to ctx, the configured timeout limits the attempt.
func (x *Exporter) Deliver(ctx context.Context, p *export.Payload) export.Attempt {
	if x.config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, x.config.Timeout)
		defer cancel()
	}
	header := http.Header{}
	isCompressed := x.compressor != nil
	if isCompressed {
		header.Set("Content-Encoding", "gzip")
	}
	response := x.poster.Post(ctx, header, p.Body)
	if response.Outcome == export.OutcomeAccepted {
		readPartialSuccess(&response, p, isCompressed)
	}
	return response.Attempt
}

// watch implements export.Exporter.Watch: it probes the receiver, and records in link whether the receiver answers.
// It probes at the start, and when a payload gets no response. If the receiver does not answer a probe, it repeats
// the probe every x.probeInterval.
func (x *Exporter) watch(ctx context.Context, link *export.Link) {
	isFirstProbe := true
	for {
		isReachable := x.isReachable(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case !isReachable:
			link.SetSilent()
		case isFirstProbe:
			link.SetReachable()
		default:
			link.SetRecovered()
		}
		isFirstProbe = false
		x.waitForNextProbe(ctx, link, isReachable)
	}
}

// waitForNextProbe waits until the receiver should be probed again, or ctx ends. If the receiver has answered the
// last probe (isReachable is true), it waits until a payload gets no response. Otherwise it waits for
// x.probeInterval.
func (x *Exporter) waitForNextProbe(ctx context.Context, link *export.Link, isReachable bool) {
	if isReachable {
		select {
		case <-link.Lost():
		case <-ctx.Done():
		}
		return
	}
	select {
	case <-time.After(x.probeInterval):
	case <-ctx.Done():
	}
}

// isReachable reports whether the receiver answers a probe in time.
func (x *Exporter) isReachable(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, x.probeInterval)
	defer cancel()
	return x.poster.Probe(ctx) == nil
}
