package datadog

import (
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

// fieldTableSize is the size of tables by field: a power of two, so that masking an index avoids a
// bounds check.
const fieldTableSize = 32

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
// save time, it predicts the name of each field: the one that followed the same field in an earlier
// span. It looks up only the names that differ from the prediction.
func (d *Decoder) readSpanMap() {
	s := d.beginSpan(spantable.KindInternal)
	body, f := d.body, fieldOther
	fields := d.Map()
	pos := d.At()
	for ; fields > 0 && !d.Failed(); fields-- {
		predicted := &d.nextField[f%fieldTableSize]
		f = *predicted
		name := &encodedNames[f%fieldTableSize]
		canReadFingerprint := pos >= 8 && pos <= len(body)-16
		if canReadFingerprint && spantable.FingerprintAt(body, pos, name.Len()) == *name {
			pos += name.Len()
		} else {
			d.Seek(pos)
			f = field(fieldTable.Find(bytesOf(body, d.readKey())))
			*predicted = f
			pos = d.At()
		}
		pos = d.readField(s, f, pos)
	}
	d.Seek(pos)
	d.trace.restoreRootPriority(s.Parent)
}

// readKey reads the key of a map element. Like the Datadog agent, it accepts a string or binary data,
// but not nil.
func (d *Decoder) readKey() spantable.Text {
	if d.Lead() == msgpack.Nil {
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
		d.trace.idLow, next = d.readID(pos)
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
		next = d.At()
	}
	return next
}

// readRareField reads the value of the field f, such as a map of tags, into the span s. It skips
// unknown fields. It must not be called for the fields that readField reads itself, or for the links
// and events of a v1 span.
func (d *Decoder) readRareField(s *spantable.Span, f field) {
	switch {
	case f == fieldMeta:
		d.readTags(s, d.readTagCount(f), spantable.TypeText)
	case f == fieldMetrics:
		d.readTags(s, d.readTagCount(f), spantable.TypeNumber)
	case f == fieldMetaStruct:
		d.readTags(s, d.readTagCount(f), spantable.TypeBytes)
	case f == fieldAttributes:
		d.table.Tags = d.table.Tags[:s.First] // a second list replaces the first
		d.readTags(s, d.readArrayOf(v1AttributeParts), typedValue)
	case f == fieldKind:
		s.Kind = kindFromNumber(d.readUint32())
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
// the map: meta, metrics or meta_struct. In v0.7, readTagCount rejects a span that has these fields in
// another order or twice, because the Datadog agent might then read another value of a tag.
func (d *Decoder) readTagCount(f field) int {
	isInOrder := f > d.lastTagMap
	if d.format == FormatV07 && !isInOrder {
		d.Fail()
	}
	d.lastTagMap = f
	acceptsNil := d.format != FormatV05 && f != fieldMetaStruct
	if acceptsNil && d.SkipNil() {
		return 0
	}
	return d.Map()
}
