package datadog

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// field identifies a field of a span. The first twelve are the elements of a v0.5 span, in order.
type field uint8

const (
	fieldOther field = iota // unknown
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
	fieldCount
)

// v05FieldCount is the number of fields of a v0.5 span.
const v05FieldCount = fieldType

// fieldNames are the names of the fields in v0.4 and v0.7; "" if these formats don't have the field.
var fieldNames = [fieldCount]string{
	fieldService: "service", fieldName: "name", fieldResource: "resource", fieldTraceID: "trace_id",
	fieldSpanID: "span_id", fieldParentID: "parent_id", fieldStart: "start", fieldDuration: "duration",
	fieldError: "error", fieldMeta: "meta", fieldMetrics: "metrics", fieldType: "type",
	fieldMetaStruct: "meta_struct", fieldLinks: "span_links", fieldEvents: "span_events",
}

// v1Fields are the fields by their v1 keys, which are numbers.
var v1Fields = [...]field{
	1: fieldService, 2: fieldName, 3: fieldResource, 4: fieldSpanID, 5: fieldParentID, 6: fieldStart,
	7: fieldDuration, 8: fieldError, 9: fieldAttributes, 10: fieldType, 11: fieldLinks, 12: fieldEvents,
	13: fieldEnv, 14: fieldVersion, 15: fieldComponent, 16: fieldKind,
}

var fieldTable = spantable.NewNames(fieldNames[:])

// fieldTableSize is the number of values of the type field, so that indexing a table by field needs no
// bounds check.
const fieldTableSize = math.MaxUint8 + 1

// encodedNames are the field names as nearly all tracers encode them, with their msgpack header. All
// are at most 16 bytes long, so Ends covers them completely. The entry of a field without a name
// matches nothing.
var encodedNames = func() (all [fieldTableSize]spantable.Fingerprint) {
	for f := range all {
		all[f] = spantable.FingerprintOf([]byte{msgpack.Unused})
		if f < len(fieldNames) && fieldNames[f] != "" {
			header := []byte{msgpack.FixStr | byte(len(fieldNames[f]))}
			all[f] = spantable.FingerprintOf(append(header, fieldNames[f]...))
		}
	}
	return all
}()

// readSpanMap reads a span that is encoded as a map from field names to values, as in v0.4 and v0.7. To
// save time, it predicts that each field is followed by the same field as in the previous span. It
// looks up a field by its name only if the prediction is wrong.
func (d *Decoder) readSpanMap() {
	span := d.beginSpan(spantable.KindInternal)
	previous := fieldOther
	unread := d.Map()
	pos := d.Pos() // a local variable, to save time; d.Seek stores it at the end
	for ; unread > 0 && !d.Failed(); unread-- {
		f := d.nextField[previous] // the prediction
		name := &encodedNames[f]
		if isFieldName(d.body, pos, name) {
			pos += name.Len()
		} else {
			f, pos = d.readFieldName(pos)
			d.nextField[previous] = f // predict f in the next span
		}
		pos = d.readField(span, f, pos)
		previous = f
	}
	d.Seek(pos)
	d.traceTags.keepRootPriority(span.Parent)
}

// isFieldName reports whether the given name, one of encodedNames, starts at body[pos]. It can return false for a
// name near the start or the end of body.
func isFieldName(body []byte, pos int, name *spantable.Fingerprint) bool {
	isFarFromEnds := pos >= 8 && pos <= len(body)-16 // as FingerprintAt requires
	return isFarFromEnds && spantable.FingerprintAt(body, pos, name.Len()) == *name
}

// readFieldName reads the name of a span field at pos. It returns the field, or fieldOther if the name is
// unknown, and the position after the name.
func (d *Decoder) readFieldName(pos int) (f field, next int) {
	d.Seek(pos)
	name := bytesOf(d.body, d.readKey())
	return field(fieldTable.Find(name)), d.Pos()
}

// readKey reads the key of a map element. Like the Datadog agent, it accepts a string or binary data,
// but not nil.
func (d *Decoder) readKey() spantable.Text {
	if d.Peek() == msgpack.Nil {
		d.Fail()
	}
	return d.readInlineText()
}

// readField reads the value of field f, which starts at pos, into s. It returns the position after it.
func (d *Decoder) readField(s *spantable.Span, f field, pos int) (next int) {
	switch f {
	case fieldService:
		s.Service, next = d.readText(pos)
	case fieldName:
		s.Name, next = d.readText(pos)
	case fieldResource:
		s.Resource, next = d.readText(pos)
	case fieldType:
		s.Type, next = d.readText(pos)
	case fieldTraceID:
		d.traceTags.traceIDLow, next = d.readID(pos)
	case fieldSpanID:
		s.ID, next = d.readID(pos)
	case fieldParentID:
		s.Parent, next = d.readID(pos)
	case fieldStart:
		s.Start, next = d.readNanoseconds(pos)
	case fieldDuration:
		s.Duration, next = d.readNanoseconds(pos)
	case fieldError:
		s.Status, next = d.readStatus(pos)
	case fieldEnv, fieldVersion, fieldComponent: // not used for single spans
		_, next = d.readText(pos)
	default:
		d.Seek(pos)
		d.readRareField(s, f)
		next = d.Pos()
	}
	return next
}

// readRareField reads the field f of the span s, which is not one of those that readField reads itself. It
// stores tags and the span kind, and skips all other values.
func (d *Decoder) readRareField(s *spantable.Span, f field) {
	switch f {
	case fieldMeta:
		d.readTags(s, d.readTagCount(f), spantable.TypeText)
	case fieldMetrics:
		d.readTags(s, d.readTagCount(f), spantable.TypeNumber)
	case fieldMetaStruct:
		d.readTags(s, d.readTagCount(f), spantable.TypeBytes)
	case fieldAttributes:
		d.table.Tags = d.table.Tags[:s.TagStart] // a second list replaces the first
		d.readTags(s, d.readTupleCount(v1AttributeParts), typedValue)
	case fieldKind:
		s.Kind = kindFromNumber(d.readUint32())
	default:
		d.skipField(f)
	}
}

// skipField skips the value of a field that is not stored. In formats before v1, the links and the events
// of a span must be lists of maps.
func (d *Decoder) skipField(f field) {
	switch {
	case d.format == FormatV1:
		d.skipV1Value(msgpack.MaxDepth)
	case f == fieldLinks || f == fieldEvents:
		for n := d.Array(); n > 0 && !d.Failed(); n-- {
			d.skipMapOrNil()
		}
	default:
		d.Skip()
	}
}

// skipMapOrNil skips a map or nil. Any other value is an error.
func (d *Decoder) skipMapOrNil() {
	if d.SkipNil() {
		return
	}
	for n := d.Map(); n > 0 && !d.Failed(); n-- {
		d.Skip() // key
		d.Skip() // value
	}
}

// kindFromNumber returns the span kind with the given number, which is OpenTelemetry's.
func kindFromNumber(n uint64) spantable.Kind {
	if n <= uint64(spantable.KindConsumer) {
		return spantable.Kind(n)
	}
	return spantable.KindUnknown
}

// readTagCount reads the header of a map of tags and returns the number of tags. f is the field with
// the map: meta, metrics or meta_struct. Like the Datadog agent, readTagCount accepts nil as an empty map, except in
// v0.5 and for meta_struct.
func (d *Decoder) readTagCount(f field) int {
	if d.format == FormatV07 {
		d.checkTagMapOrder(f) // rejects a second map of the same field, too
	}
	acceptsNil := d.format != FormatV05 && f != fieldMetaStruct
	if acceptsNil && d.SkipNil() {
		return 0
	}
	return d.Map()
}

// checkTagMapOrder must be called for each field of a span that is a map of tags. It rejects the payload if a field is
// repeated, or if the fields are not in the order meta, metrics, meta_struct: the Datadog agent might then use another
// value of a tag than the daemon.
func (d *Decoder) checkTagMapOrder(f field) {
	isInOrder := f > d.lastTagMap // constants of type field are in the required order
	if !isInOrder {
		d.Fail()
	}
	d.lastTagMap = f
}
