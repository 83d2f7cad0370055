package fleet

import (
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// receiver receives OTLP metrics and adds up the deltas of each series, identified by all its
// attributes.
type receiver struct {
	t         *testing.T
	address   string
	onRequest func(w http.ResponseWriter) fate // decides the outcome of a metrics request; nil for none

	mu     sync.Mutex
	points map[string]*distribution // by metric and attributes
	spans  uint64                   // number of spans in all histograms
	bytes  int                      // total length of the received bodies
	many   int                      // number of points
}

// newReceiver creates a receiver that does not listen yet.
func newReceiver(t *testing.T) *receiver {
	t.Helper()
	return &receiver{t: t, address: freeAddress(t), points: map[string]*distribution{}}
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := newReceiver(t)
	r.start()
	return r
}

func (r *receiver) url() string { return "http://" + r.address }

func (r *receiver) start() {
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		r.t.Error(err)
		return
	}
	server := &http.Server{Handler: http.HandlerFunc(r.take)}
	go server.Serve(listener)
	r.t.Cleanup(func() { server.Close() })
}

func (r *receiver) take(w http.ResponseWriter, request *http.Request) {
	body, length, err := read(request)
	asked := pmetricotlp.NewExportRequest()
	if err == nil {
		err = asked.UnmarshalProto(body)
	}
	if err != nil {
		r.t.Errorf("read a request for %s: %v", request.URL.Path, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	left := 0
	if r.onRequest != nil && asked.Metrics().DataPointCount() > 0 { // a request without points is a probe
		switch r.onRequest(w) {
		case answered:
			return
		case leavesOut:
			left = 1
		case taken:
		}
	}
	r.bytes += length
	for _, resource := range asked.Metrics().ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				if left > 0 && m.Type() == pmetric.MetricTypeExponentialHistogram {
					points := m.ExponentialHistogram().DataPoints()
					points.RemoveIf(func(pmetric.ExponentialHistogramDataPoint) bool {
						left--
						return left >= 0
					})
				}
				r.add(resource.Resource().Attributes(), m)
			}
		}
	}
}

func read(request *http.Request) (body []byte, length int, err error) {
	packed, err := io.ReadAll(request.Body)
	if err != nil || request.Header.Get("Content-Encoding") != "gzip" {
		return packed, len(packed), err
	}
	unpacked, err := gzip.NewReader(strings.NewReader(string(packed)))
	if err != nil {
		return nil, 0, err
	}
	body, err = io.ReadAll(unpacked)
	return body, len(packed), err
}

// add adds a metric's points to the points of their series. The only significant resource attribute is
// the service.
func (r *receiver) add(resource pcommon.Map, m pmetric.Metric) {
	service, _ := resource.Get("service.name")
	to := func(attributes pcommon.Map, delta *distribution) {
		r.many++
		adding(r.points, m.Name()+" "+m.Unit()+" of "+service.AsString()+": "+attributesText(attributes),
			delta)
	}
	switch m.Type() {
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			d := newDistribution()
			d.count = uint64(p.IntValue())
			to(p.Attributes(), d)
		}
		if !m.Sum().IsMonotonic() || m.Sum().AggregationTemporality() != pmetric.AggregationTemporalityDelta {
			r.t.Errorf("%s is no monotonic delta", m.Name())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			r.spans += p.Count()
			to(p.Attributes(), fromPoint(p))
		}
		if m.ExponentialHistogram().AggregationTemporality() != pmetric.AggregationTemporalityDelta {
			r.t.Errorf("%s is no delta", m.Name())
		}
	default:
		r.t.Errorf("%s is a %s", m.Name(), m.Type())
	}
}

// attributesText names a series by its attributes, except those that identify the daemon.
func attributesText(attributes pcommon.Map) string {
	all := map[string]string{}
	for name, value := range attributes.All() {
		all[name] = value.AsString()
	}
	delete(all, "collector.instance.id")
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&s, "%s=%q ", name, all[name])
	}
	return s.String()
}

// taken returns the number of received spans.
func (r *receiver) taken() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spans
}
