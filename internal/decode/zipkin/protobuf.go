package zipkin

import (
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// The kinds of spans, by their numbers in protobuf and their names in JSON.
var (
	kinds = [...]spantable.Kind{
		spantable.KindInternal, spantable.KindClient, spantable.KindServer, spantable.KindProducer,
		spantable.KindConsumer,
	}
	kindNames = [len(kinds)]string{"", "CLIENT", "SERVER", "PRODUCER", "CONSUMER"}
)

// How fields are written.
const asVarint, asFixed64, asBytes = 0, 1, 2

// Protobuf decodes a ListOfSpans.
func (d *Decoder) Protobuf(r *otlp.Request, body []byte, ofSpans, ofResources *spantable.Names) error {
	d.begin(r, body, ofSpans, ofResources)
	isRead := otlp.EachField(body, 0, func(f otlp.Field) bool {
		if f.Tag != 1<<3|asBytes {
			return true
		}
		d.beginSpan()
		return otlp.EachField(body[:f.End], f.Start, d.spanField) && d.endSpan() == nil
	})
	if !isRead {
		r.Fail(ErrUnparsable)
	}
	return r.Err() //nolint:wrapcheck // it says what to do
}

// spanField reads a field of a span, and reports whether it can be read.
func (d *Decoder) spanField(f otlp.Field) (isRead bool) {
	s, said := &d.span, spantable.Text{At: uint32(f.Start), Len: uint32(f.End - f.Start)}
	isRead = true
	switch f.Tag {
	case 1<<3 | asBytes:
		d.place.TraceHigh, d.place.TraceLow, isRead = idOf(d.table.Bytes(said))
	case 2<<3 | asBytes:
		_, s.Parent, isRead = idOf(d.table.Bytes(said))
	case 3<<3 | asBytes:
		_, s.ID, isRead = idOf(d.table.Bytes(said))
	case 4<<3 | asVarint:
		if f.Value < uint64(len(kinds)) {
			s.Kind = kinds[f.Value]
		}
	case 5<<3 | asBytes:
		s.Name = said
	case 6<<3 | asFixed64:
		s.Start = nanoseconds(f.Value)
	case 7<<3 | asVarint:
		d.isFinished = true
		s.Duration = nanoseconds(f.Value)
	case 8<<3 | asBytes:
		d.service, _, isRead = d.pair(f)
	case 9<<3 | asBytes:
		d.peer, _, isRead = d.pair(f)
	case 11<<3 | asBytes:
		name, value, isPair := d.pair(f)
		d.tag(d.table.Bytes(name), value)
		isRead = isPair
	case 13<<3 | asVarint:
		d.isShared = f.Value != 0
	}
	return isRead
}

// pair is the first two texts of a message: the name and the value of a tag, or the service of an
// endpoint and what is none of ours.
func (d *Decoder) pair(of otlp.Field) (first, second spantable.Text, isRead bool) {
	isRead = otlp.EachField(d.Body[:of.End], of.Start, func(f otlp.Field) bool {
		switch said := (spantable.Text{At: uint32(f.Start), Len: uint32(f.End - f.Start)}); f.Tag {
		case 1<<3 | asBytes:
			first = said
		case 2<<3 | asBytes:
			second = said
		}
		return true
	})
	return first, second, isRead
}

// idOf is an id of sixteen bytes at most.
func idOf(bytes []byte) (high, low uint64, isOne bool) {
	for _, b := range bytes[:min(len(bytes), 16)] {
		high, low = high<<8|low>>56, low<<8|uint64(b)
	}
	return high, low, len(bytes) <= 16
}
