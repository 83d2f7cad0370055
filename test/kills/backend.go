package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
)

// otlpBackend is a fake backend for OTLP metrics. The collector of package standin would reject time
// windows that a kill cut short.
type otlpBackend struct {
	tally
	faults      *faults
	temporality string
	listener    net.Listener
	server      *http.Server
	totals      map[cumulativeSeries]uint64
}

// cumulativeSeries identifies a cumulative total: a series and its start time.
type cumulativeSeries struct {
	slot
	series string
	start  uint64
}

// calls is the name of the span counter metric.
const calls = "traces.span.metrics.calls"

func newOTLPBackend(temporality string, f *faults) (_ *otlpBackend, err error) {
	b := &otlpBackend{faults: f, temporality: temporality, totals: map[cumulativeSeries]uint64{}}
	if b.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start OTLP backend: %w", err)
	}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	go b.server.Serve(b.listener) //nolint:errcheck // it returns ErrServerClosed
	return b, nil
}

// ServeHTTP handles one request. It counts the request once the body is read, even if the daemon is
// gone.
func (b *otlpBackend) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	fault := b.faults.draw()
	b.faults.notifyArrival()
	time.Sleep(fault.countDelay)
	if fault.rejects {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	metrics, err := read(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.countMetrics(metrics)
	b.faults.notifyArrival()
	time.Sleep(fault.responseDelay)
	w.Header().Set("Content-Type", "application/x-protobuf") // the response is an empty message
}

func read(r *http.Request) (collector.Request, error) {
	reader := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		decompressed, err := gzip.NewReader(reader)
		if err != nil {
			return nil, fmt.Errorf("read gzip: %w", err)
		}
		reader = decompressed
	}
	body, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	return collector.Decode(body)
}

func (b *otlpBackend) countMetrics(metrics collector.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, resource := range metrics {
		for _, scope := range resource.Scopes {
			for _, m := range scope.Metrics {
				if m.Name != calls {
					continue
				}
				for i := range m.Points {
					b.countPoint(&m.Points[i])
				}
			}
		}
	}
}

// countPoint counts a data point. The largest value of a cumulative total wins, because two attempts to
// send it can arrive in either order.
func (b *otlpBackend) countPoint(p *collector.Point) {
	s := cumulativeSeries{series: fmt.Sprint(p.Attributes), start: p.Start}
	for _, a := range p.Attributes {
		switch value, _ := a.Value.(string); a.Key {
		case "service.name":
			s.service = value
		case "span.name":
			s.name = value
		}
	}
	if b.temporality == "delta" {
		b.add(s.slot, uint64(p.Value))
		return
	}
	if now, previous := uint64(p.Value), b.totals[s]; now > previous {
		b.totals[s] = now
		b.add(s.slot, now-previous)
	}
}

func (b *otlpBackend) flags() []string {
	return []string{
		"--otlp-metrics-endpoint=http://" + b.listener.Addr().String() + "/v1/metrics",
		"--otlp-temporality=" + b.temporality,
	}
}

func (b *otlpBackend) run(context.Context)          {}
func (b *otlpBackend) settle(context.Context) error { return nil }
func (b *otlpBackend) close()                       { _ = b.server.Close() }

func (b *otlpBackend) count() counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.counted)
}
