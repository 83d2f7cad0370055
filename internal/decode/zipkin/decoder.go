// Package zipkin decodes the spans of Zipkin's API v2, in JSON or in protobuf (ListOfSpans), into the
// table of a request of OTLP, so that they count by OpenTelemetry's conventions.
//
// Spans say in OpenTelemetry's words what the Collector's receiver has them say: tags are attributes,
// of the span or, where a resource has that name, of its sender. The local endpoint names the
// service, the remote one is peer.service. The tag error is an error whatever its value, as Zipkin
// has it, and a span without a kind is internal.
//
// A report without a duration is of a span that is not finished: another report of the same span
// brings it, so each span counts once. The server's side of a shared span is no root.
//
// # Bounds and threading
//
// As package decode/otlp. A body is read whole or not at all. One goroutine at a time uses a Decoder,
// whose memory is used again for the next body.
package zipkin

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/decode/jsonscan"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// ErrUnparsable is why a body is not counted: it is no list of spans.
var ErrUnparsable = errors.New("read spans: the body is no list of spans of Zipkin's API v2: check what the " +
	"sender writes, and that its Content-Type says so where that is protobuf")

// Decoder decodes bodies into the table of a request.
type Decoder struct {
	jsonscan.Scanner
	table                *otlp.Request
	ofSpans, ofResources *spantable.Names

	// of the span that is being read
	span              spantable.Span
	place             otlp.SpanExtra
	own               []spantable.Tag // what it says of its sender
	service, peer     spantable.Text
	isError, isShared bool
	isFinished        bool // it says how long it took
}

func (d *Decoder) begin(r *otlp.Request, body []byte, ofSpans, ofResources *spantable.Names) {
	r.Begin(body)
	d.Scanner, d.table = jsonscan.Scanner{Body: body}, r
	d.ofSpans, d.ofResources = ofSpans, ofResources
}

func (d *Decoder) beginSpan() {
	d.span = spantable.Span{Kind: spantable.KindInternal, First: uint32(len(d.table.Tags))}
	d.place, d.own, d.service, d.peer = otlp.SpanExtra{}, d.own[:0], spantable.Text{}, spantable.Text{}
	d.isError, d.isShared, d.isFinished = false, false, false
}

// endSpan adds the span to the table.
func (d *Decoder) endSpan() error {
	s, t := &d.span, d.table
	switch {
	case s.ID == 0, d.place.TraceHigh|d.place.TraceLow == 0:
		return ErrUnparsable
	case !d.isFinished:
		t.Tags = t.Tags[:s.First]
		return nil
	}
	s.Duration = max(s.Duration, nanoseconds(1)) // to which Zipkin has reporters round up; Brave writes 0
	if d.isError {
		s.Status = spantable.StatusError
	}
	if s.Parent == s.ID {
		s.Parent = 0
	}
	if s.Parent == 0 && d.isShared {
		s.Parent = s.ID // its client's side
	}
	t.Tags = set(t.Tags, s.First, d.ofSpans.Find([]byte("peer.service")), d.peer)
	d.own = set(d.own, 0, d.ofResources.Find([]byte("service.name")), d.service)
	s.Last = uint32(len(t.Tags))
	if *t.AddSpan(s.Kind) = *s; len(t.Tags) > t.Limits.Tags {
		t.Fail(spantable.ErrTooMuch)
	}
	if !d.isOfLastSender() {
		t.AddResource(d.own)
	}
	if t.Err() == nil {
		t.AddExtra(d.place)
	}
	return t.Err() //nolint:wrapcheck // it says what to do
}

func (d *Decoder) isOfLastSender() bool {
	t := d.table
	if len(t.Resources) == 0 {
		return false
	}
	last := &t.Resources[len(t.Resources)-1]
	return slices.EqualFunc(t.Tags[last.FirstTag:last.LastTag], d.own, func(a, b spantable.Tag) bool {
		return a.Label == b.Label && bytes.Equal(t.Bytes(a.Text()), t.Bytes(b.Text()))
	})
}

// statuses are the values of otel.status_code, as SDKs write them and as Collectors do.
var statuses = map[string]spantable.Status{
	"OK": spantable.StatusOK, "STATUS_CODE_OK": spantable.StatusOK,
	"ERROR": spantable.StatusError, "STATUS_CODE_ERROR": spantable.StatusError,
}

// tag takes over a tag of the span.
func (d *Decoder) tag(name []byte, value spantable.Text) {
	switch string(name) {
	case "error":
		d.isError = true
	case "otel.status_code":
		d.span.Status = statuses[d.table.String(value)]
	case "w3c.tracestate":
		d.place.State = value
	}
	d.table.Tags = set(d.table.Tags, d.span.First, d.ofSpans.Find(name), value)
	d.own = set(d.own, 0, d.ofResources.Find(name), value)
}

// set sets a tag among those from the first on, where somebody asks for it and it says anything. Of
// two with one label the later one counts.
func set(tags []spantable.Tag, first uint32, l spantable.Label, value spantable.Text) []spantable.Tag {
	if l == spantable.Other || value.Len == 0 {
		return tags
	}
	for i := range tags[first:] {
		if t := &tags[int(first)+i]; t.Label == l {
			*t = otlp.TextTag(l, value)
			return tags
		}
	}
	return append(tags, otlp.TextTag(l, value))
}

// nanoseconds are those of a number of microseconds, none of one that is negative.
func nanoseconds(micros uint64) uint64 {
	if int64(micros) < 0 {
		return 0
	}
	return min(micros, math.MaxInt64/1000) * 1000
}
