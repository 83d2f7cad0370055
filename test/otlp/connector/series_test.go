package connector

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// series is the content of a series: calls, and a histogram in seconds.
type series struct {
	calls   int64
	spans   uint64
	zeros   uint64
	seconds float64
	scale   int            // the coarsest scale of its points; finest without points
	buckets map[int]uint64 // non-empty buckets at that scale
}

// finest is the scale of a series without a point.
const finest = 20

// allSeries are the series of one source, by resource and attributes.
type allSeries map[string]*series

func (all allSeries) of(resource, attributes pcommon.Map) *series {
	name := "resource " + text(resource) + "| " + text(attributes)
	if all[name] == nil {
		all[name] = &series{scale: finest, buckets: map[int]uint64{}}
	}
	return all[name]
}

// present maps old attribute names to current ones.
var present = map[string]string{
	"http.method": "http.request.method", "http.status_code": "http.response.status_code",
	"db.system": "db.system.name", "db.name": "db.namespace",
	"db.sql.table": "db.collection.name", "db.operation": "db.operation.name",
	"messaging.destination": "messaging.destination.name",
	"messaging.operation":   "messaging.operation.type", "rpc.system": "rpc.system.name",
	"deployment.environment": "deployment.environment.name",
}

// text lists attributes under their current names in a fixed order. If an attribute is present under both
// names, the value of the current name applies.
func text(attributes pcommon.Map) string {
	all := map[string]string{}
	for name, value := range attributes.All() {
		if now, isOld := present[name]; !isOld {
			all[name] = value.AsString()
		} else if _, has := attributes.Get(now); !has {
			all[now] = value.AsString()
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s=%q ", name, all[name])
	}
	return b.String()
}

// add adds the points of a request.
func (all allSeries) add(metrics pmetric.Metrics) {
	for _, r := range metrics.ResourceMetrics().All() {
		for _, scope := range r.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				switch name := m.Name() + " " + m.Unit(); name {
				case "traces.span.metrics.calls ":
					for _, p := range m.Sum().DataPoints().All() {
						all.of(r.Resource().Attributes(), p.Attributes()).calls += p.IntValue()
					}
				case "traces.span.metrics.duration s":
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						all.of(r.Resource().Attributes(), p.Attributes()).addPoint(p)
					}
				default:
					panic("BUG: there is no metric " + name)
				}
			}
		}
	}
}

func (s *series) addPoint(p pmetric.ExponentialHistogramDataPoint) {
	s.spans, s.zeros, s.seconds = s.spans+p.Count(), s.zeros+p.ZeroCount(), s.seconds+p.Sum()
	more := &series{scale: int(p.Scale()), buckets: map[int]uint64{}}
	for i, n := range p.Positive().BucketCounts().All() {
		if n > 0 {
			more.buckets[int(p.Positive().Offset())+i] = n
		}
	}
	scale := min(s.scale, more.scale)
	s.buckets, s.scale = s.at(scale), scale
	for i, n := range more.at(scale) {
		s.buckets[i] += n
	}
}

// at returns the buckets at a coarser or equal scale. Each of them consists of complete buckets of s.
func (s *series) at(scale int) map[int]uint64 {
	coarse := map[int]uint64{}
	for i, n := range s.buckets {
		coarse[i>>(s.scale-scale)] += n
	}
	return coarse
}

// differs describes the difference between two histograms at the coarser of their scales, or returns
// "".
func (s *series) differs(other *series) string {
	scale := min(s.scale, other.scale)
	switch a, b := s.at(scale), other.at(scale); {
	case s.spans != other.spans || s.zeros != other.zeros:
		return fmt.Sprintf("%d and %d spans, %d and %d of no duration", s.spans, other.spans, s.zeros,
			other.zeros)
	case !maps.Equal(a, b):
		return fmt.Sprintf("at scale %d the buckets %v and %v", scale, a, b)
	case math.Abs(s.seconds-other.seconds) > 1e-9*s.seconds:
		return fmt.Sprintf("%v and %v seconds", s.seconds, other.seconds)
	}
	return ""
}
