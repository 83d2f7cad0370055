package otlp

import "google.golang.org/protobuf/encoding/protowire"

// metric is one of the metrics of a resource. Only its points change.
type metric struct {
	head   []byte           // its name and unit, encoded
	field  protowire.Number // of its data
	tail   []byte           // what its data have behind their points
	points []byte           // encoded fields
	point  []byte           // the body of the point that is being written
}

// newSum is a metric that counts spans.
func newSum(name string, temporality uint64) *metric {
	tail := appendVarint(nil, fieldTemporality, temporality)
	return &metric{head: appendString(nil, fieldMetricName, name), field: fieldMetricSum, tail: appendVarint(tail, fieldIsMonotonic, 1)}
}

// newHistogram is a metric of seconds.
func newHistogram(name string, temporality uint64) *metric {
	head := appendString(appendString(nil, fieldMetricName, name), fieldMetricUnit, "s")
	return &metric{head: head, field: fieldMetricHistogram, tail: appendVarint(nil, fieldTemporality, temporality)}
}

// add adds the point that was written.
func (m *metric) add() { m.points = appendMessage(m.points, fieldPoints, m.point) }

func (m *metric) dataSize() int { return len(m.points) + len(m.tail) }

func (m *metric) size() int { return len(m.head) + messageSize(m.field, m.dataSize()) }

// messageSize is what a message of so many bytes takes as a field.
func messageSize(field protowire.Number, size int) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(size)
}

// appendHead begins a message of so many bytes.
func appendHead(b []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
}

// body is a request that is being written: the metrics of some resources, and those of
// the resource whose points are added just now. Sizes are known before a message is
// written, so no point is copied more than twice.
type body struct {
	scope    []byte // of all metrics, encoded as a field
	metrics  []*metric
	whole    []byte // the metrics of the resources before
	resource []byte // the present one's attributes
	marks    []int  // how many bytes of points each metric had when mark was called
}

// begin empties it.
func (b *body) begin() {
	b.whole = b.whole[:0]
	b.of(nil)
}

// of begins the metrics of a resource.
func (b *body) of(resource []byte) {
	b.resource = resource
	for _, m := range b.metrics {
		m.points = m.points[:0]
	}
}

// mark remembers how far the points go, and back takes away what came after.
func (b *body) mark() {
	b.marks = b.marks[:0]
	for _, m := range b.metrics {
		b.marks = append(b.marks, len(m.points))
	}
}

func (b *body) back() {
	for i, m := range b.metrics {
		m.points = m.points[:b.marks[i]]
	}
}

// size is how long the request is, exactly.
func (b *body) size() int {
	size := len(b.whole)
	if scope := b.scopeSize(); scope > 0 {
		size += messageSize(fieldResourceMetrics, b.resourceSize(scope))
	}
	return size
}

func (b *body) resourceSize(scope int) int {
	return messageSize(fieldResource, len(b.resource)) + messageSize(fieldScopeMetrics, scope)
}

// scopeSize is 0 where the present resource has no points.
func (b *body) scopeSize() (size int) {
	for _, m := range b.metrics {
		if len(m.points) > 0 {
			size += messageSize(fieldMetrics, m.size())
		}
	}
	if size > 0 {
		size += len(b.scope)
	}
	return size
}

// end writes the metrics of the present resource behind those of the ones before.
func (b *body) end() {
	scope := b.scopeSize()
	if scope == 0 {
		return
	}
	w := appendHead(b.whole, fieldResourceMetrics, b.resourceSize(scope))
	w = appendMessage(w, fieldResource, b.resource)
	w = appendHead(w, fieldScopeMetrics, scope)
	w = append(w, b.scope...)
	for _, m := range b.metrics {
		if len(m.points) > 0 {
			w = appendHead(w, fieldMetrics, m.size())
			w = append(w, m.head...)
			w = appendHead(w, m.field, m.dataSize())
			w = append(append(w, m.points...), m.tail...)
		}
	}
	b.whole = w
	b.of(b.resource)
}
