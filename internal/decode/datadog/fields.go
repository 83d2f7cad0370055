package datadog

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// field is a field of a span, in the order of v0.5, which has the first twelve.
type field uint8

const (
	fieldOther field = iota // what we have no use for
	fieldService
	fieldName
	fieldResource
	fieldTraceID
	fieldSpanID
	fieldParentID
	fieldStart
	fieldDuration
	fieldError
	fieldMeta
	fieldMetrics
	fieldType
	fieldMetaStruct
	fieldLinks
	fieldEvents
	fieldAttributes
	fieldEnv
	fieldVersion
	fieldComponent
	fieldKind
	fields
)

// fieldsV05 is how many of them a span of v0.5 has.
const fieldsV05 = fieldType

// fieldNames are what v0.4 and v0.7 call the fields, those that they have.
var fieldNames = [fields]string{
	fieldService: "service", fieldName: "name", fieldResource: "resource", fieldTraceID: "trace_id",
	fieldSpanID: "span_id", fieldParentID: "parent_id", fieldStart: "start", fieldDuration: "duration",
	fieldError: "error", fieldMeta: "meta", fieldMetrics: "metrics", fieldType: "type",
	fieldMetaStruct: "meta_struct", fieldLinks: "span_links", fieldEvents: "span_events",
}

// fieldNumbers are the fields by the numbers that v1.0 gives them.
var fieldNumbers = [...]field{
	1: fieldService, 2: fieldName, 3: fieldResource, 4: fieldSpanID, 5: fieldParentID, 6: fieldStart,
	7: fieldDuration, 8: fieldError, 9: fieldAttributes, 10: fieldType, 11: fieldLinks, 12: fieldEvents,
	13: fieldEnv, 14: fieldVersion, 15: fieldComponent, 16: fieldKind,
}

var fieldTable = spantable.NewNames(fieldNames[:])

// fieldRoom is more than there are fields, and a power of two.
const fieldRoom = 32

// writtenNames are the ends of those names as they are nearly always written, head and all, which
// in no more than sixteen bytes is all of them. Where there is no name, there is what begins none.
var writtenNames = func() (all [fieldRoom]spantable.Ends) {
	for f := range all {
		all[f] = spantable.EndsOf([]byte{msgpack.Unused})
		if f < len(fieldNames) && fieldNames[f] != "" {
			head := []byte{msgpack.FixStr | byte(len(fieldNames[f]))}
			all[f] = spantable.EndsOf(append(head, fieldNames[f]...))
		}
	}
	return all
}()

// readField reads the value of a field, which begins at a place of the body, and returns where
// it ends.
func (d *Decoder) readField(s *spantable.Span, f field, at int) (next int) {
	switch f {
	case fieldService:
		s.Service, next = d.text(at)
	case fieldName:
		s.Name, next = d.text(at)
	case fieldResource:
		s.Resource, next = d.text(at)
	case fieldType:
		s.Type, next = d.text(at)
	case fieldTraceID:
		d.trace.id, next = d.id(at)
	case fieldSpanID:
		s.ID, next = d.id(at)
	case fieldParentID:
		s.Parent, next = d.id(at)
	case fieldStart:
		s.Start, next = d.time(at)
	case fieldDuration:
		s.Duration, next = d.time(at)
	case fieldError:
		s.Status, next = d.status(at)
	case fieldEnv, fieldVersion, fieldComponent: // of the span alone
		_, next = d.text(at)
	default:
		d.Seek(at)
		d.readParts(s, f)
		next = d.At()
	}
	return next
}

// readParts reads a field that has parts, and what is rare. Links and events of v1.0, which
// bring strings, are read by its own file before.
func (d *Decoder) readParts(s *spantable.Span, f field) {
	switch {
	case f == fieldMeta:
		d.readTags(s, d.pairs(f), spantable.IsText)
	case f == fieldMetrics:
		d.readTags(s, d.pairs(f), spantable.IsNumber)
	case f == fieldMetaStruct:
		d.readTags(s, d.pairs(f), spantable.IsBytes)
	case f == fieldAttributes:
		d.table.Tags = d.table.Tags[:s.First] // a second list replaces the first
		d.readTags(s, d.groups(3), isStated)
	case f == fieldKind:
		s.Kind = kindNumbered(d.Uint(math.MaxUint32))
	case d.format == FormatV1:
		d.skipStreamed(msgpack.MaxDepth)
	case f == fieldLinks || f == fieldEvents:
		for n := d.Array(); n > 0 && !d.Failed(); n-- {
			d.skipMap()
		}
	default:
		d.Skip()
	}
}

// skipMap steps over a link or an event of a span.
func (d *Decoder) skipMap() {
	if d.IsNil() {
		return
	}
	for n := 2 * d.Map(); n > 0 && !d.Failed(); n-- {
		d.Skip()
	}
}

// kindNumbered is the kind of a number, which are those of OpenTelemetry.
func kindNumbered(n uint64) spantable.Kind {
	if n <= uint64(spantable.KindConsumer) {
		return spantable.Kind(n)
	}
	return spantable.KindUnknown
}

// pairs reads how many tags of a kind follow. Of two tags of one name the agent keeps the later
// one, but in v0.7 it goes by their kinds, in this order.
func (d *Decoder) pairs(kind field) int {
	if d.format == FormatV07 && kind <= d.lastTags {
		d.Fail()
	}
	d.lastTags = kind
	if d.format != FormatV05 && kind != fieldMetaStruct && d.IsNil() {
		return 0
	}
	return d.Map()
}
