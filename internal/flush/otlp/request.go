package otlp

import (
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
	"google.golang.org/protobuf/encoding/protowire"
)

// written are the points of one series, each a field of the metric that it is of.
type written struct{ calls, durations []byte }

// metric is one of the two metrics of a resource. Only its points change.
type metric struct {
	head   []byte           // its name and unit, encoded
	field  protowire.Number // of its data
	tail   []byte           // what its data have behind their points
	points []byte           // encoded fields
}

// request is the one that is being filled: the metrics of some resources, and those of the
// resource whose points are added just now. What does not fit in it begins the next.
type request struct {
	limit int
	emit  func(body []byte, spans uint64, said *totals.Said)

	scope            []byte // of all metrics, encoded as a field
	calls, durations metric

	whole     []byte // the metrics of the resources before
	resource  []byte // the present one's attributes
	hasPoints bool
	spans     uint64       // that it stands for
	said      *totals.Said // nil where points are deltas
}

// of begins the metrics of a resource.
func (r *request) of(resource []byte) {
	r.endResource()
	r.resource = resource
}

// add adds the points of a series, in the next request if need be, and says whether they
// fit in one.
func (r *request) add(more written) (fits bool) {
	for {
		calls, durations := len(r.calls.points), len(r.durations.points)
		r.calls.points = append(r.calls.points, more.calls...)
		r.durations.points = append(r.durations.points, more.durations...)
		if r.size() <= r.limit {
			r.hasPoints = true
			return true
		}
		r.calls.points, r.durations.points = r.calls.points[:calls], r.durations.points[:durations]
		if !r.hasPoints {
			return false
		}
		r.end()
	}
}

// end hands it to emit, unless it is empty, and begins the next.
func (r *request) end() {
	if r.endResource(); r.hasPoints {
		r.emit(r.whole, r.spans, r.said)
	}
	r.whole, r.spans, r.said, r.hasPoints = r.whole[:0], 0, nil, false
}

// endResource writes the metrics of the present resource behind those of the ones before.
func (r *request) endResource() {
	scope := r.scopeSize()
	if scope == 0 {
		return
	}
	b := appendHead(r.whole, fieldResourceMetrics, fieldSize(len(r.resource))+fieldSize(scope))
	b = appendMessage(b, fieldResource, r.resource)
	b = append(appendHead(b, fieldScopeMetrics, scope), r.scope...)
	for _, m := range [...]*metric{&r.calls, &r.durations} {
		if len(m.points) > 0 {
			b = append(appendHead(b, fieldMetrics, m.size()), m.head...)
			b = append(appendHead(b, m.field, len(m.points)+len(m.tail)), m.points...)
			b = append(b, m.tail...)
			m.points = m.points[:0]
		}
	}
	r.whole = b
}

// size is how long the request is, exactly.
func (r *request) size() int {
	scope := r.scopeSize()
	if scope == 0 {
		return len(r.whole)
	}
	return len(r.whole) + fieldSize(fieldSize(len(r.resource))+fieldSize(scope))
}

// scopeSize is how long the metrics of the present resource are, 0 where it has no points.
func (r *request) scopeSize() (size int) {
	for _, m := range [...]*metric{&r.calls, &r.durations} {
		if len(m.points) > 0 {
			size += fieldSize(m.size())
		}
	}
	if size > 0 {
		size += len(r.scope)
	}
	return size
}

func (m *metric) size() int { return len(m.head) + fieldSize(len(m.points)+len(m.tail)) }

// newRequest makes an empty one of two metrics.
func newRequest(calls, durations, version string, temporality uint64) request {
	scope := appendString(nil, fieldScopeName, "spanstatsd")
	if version != "" {
		scope = appendString(scope, fieldScopeVersion, strings.ToValidUTF8(version, "\uFFFD"))
	}
	tail := appendVarint(nil, fieldTemporality, temporality)
	return request{
		scope: appendMessage(nil, fieldScope, scope),
		calls: metric{
			head: appendString(nil, fieldMetricName, calls), field: fieldMetricSum,
			tail: appendVarint(slices.Clone(tail), fieldIsMonotonic, 1),
		},
		durations: metric{
			head: metricHead(durations, "s"), field: fieldMetricHistogram, tail: tail,
		},
	}
}

// metricHead is the name and unit of a metric.
func metricHead(name, unit string) []byte {
	return appendString(appendString(nil, fieldMetricName, name), fieldMetricUnit, unit)
}
