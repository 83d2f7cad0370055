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

// receiver receives OTLP metrics. The collector of package standin would reject time windows that a
// kill cut short.
type receiver struct {
	tally
	moods       *moods
	temporality string
	listener    net.Listener
	server      *http.Server
	totals      map[running]uint64
}

// running identifies a cumulative total: a series and its start time.
type running struct {
	slot
	series string
	start  uint64
}

// calls is the name of the span counter metric.
const calls = "traces.span.metrics.calls"

func newReceiver(temporality string, m *moods) (_ *receiver, err error) {
	r := &receiver{moods: m, temporality: temporality, totals: map[running]uint64{}}
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("start receiver: %w", err)
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go r.server.Serve(r.listener) //nolint:errcheck // it says that it was closed
	return r, nil
}

// ServeHTTP handles one request. It counts the request once the body is read, even if the daemon is
// gone.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	one := r.moods.draw()
	r.moods.notice()
	time.Sleep(one.before)
	if one.refuses {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	metrics, err := read(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.take(metrics)
	r.moods.notice()
	time.Sleep(one.after)
	w.Header().Set("Content-Type", "application/x-protobuf") // of an empty message
}

func read(r *http.Request) (collector.Request, error) {
	from := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(from)
		if err != nil {
			return nil, fmt.Errorf("read gzip: %w", err)
		}
		from = unpacked
	}
	body, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	return collector.Decode(body)
}

func (r *receiver) take(metrics collector.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range metrics {
		for _, scope := range resource.Scopes {
			for _, m := range scope.Metrics {
				if m.Name != calls {
					continue
				}
				for i := range m.Points {
					r.takePoint(&m.Points[i])
				}
			}
		}
	}
}

// takePoint counts a data point. The largest value of a cumulative total wins, because two attempts to
// send it can arrive in either order.
func (r *receiver) takePoint(p *collector.Point) {
	s := running{series: fmt.Sprint(p.Attributes), start: p.Start}
	for _, a := range p.Attributes {
		switch value, _ := a.Value.(string); a.Key {
		case "service.name":
			s.service = value
		case "span.name":
			s.name = value
		}
	}
	if r.temporality == "delta" {
		r.add(s.slot, uint64(p.Value))
		return
	}
	if now, before := uint64(p.Value), r.totals[s]; now > before {
		r.totals[s] = now
		r.add(s.slot, now-before)
	}
}

func (r *receiver) flags() []string {
	return []string{
		"--otlp-metrics-endpoint=http://" + r.listener.Addr().String() + "/v1/metrics",
		"--otlp-temporality=" + r.temporality,
	}
}

func (r *receiver) run(context.Context)          {}
func (r *receiver) settle(context.Context) error { return nil }
func (r *receiver) close()                       { _ = r.server.Close() }

func (r *receiver) count() counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counted)
}
