package datadog

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
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
var writtenNames = func() (all [fieldRoom]spantable.Fingerprint) {
	for f := range all {
		all[f] = spantable.FingerprintOf([]byte{msgpack.Unused})
		if f < len(fieldNames) && fieldNames[f] != "" {
			head := []byte{msgpack.FixStr | byte(len(fieldNames[f]))}
			all[f] = spantable.FingerprintOf(append(head, fieldNames[f]...))
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

// values reads the values of a body, each as its format writes it.
type values struct {
	msgpack.Reader
	body    []byte
	format  Format
	table   *spantable.Table
	names   *spantable.Names // of the tags that are kept
	strings strings          // of the formats that number them
}

// check ends the reading of a body that exceeds its limits.
func (d *values) check() {
	if d.table.Err() != nil {
		d.Fail()
	}
}

// addString gives a string the next number, if there may be one more.
func (d *values) addString(t spantable.Text, l spantable.Label) {
	s := &d.strings
	if len(s.texts) >= d.table.Limits.Strings {
		d.table.Fail(spantable.ErrTooMuch)
		d.Fail()
		return
	}
	s.texts, s.labels = append(s.texts, t), append(s.labels, l)
}

// numberOf is the number of a string, a new one where the body has not had it. It reports
// whether it is new.
func (d *values) numberOf(t spantable.Text) (number int, isNew bool) {
	s, text := &d.strings, bytesOf(d.body, t)
	if 2*(len(s.texts)+1) > len(s.slots) {
		s.grow(d.body)
	}
	slot := s.slot(d.body, text)
	if *slot != 0 {
		return int(*slot - 1), false
	}
	number = len(s.texts)
	if d.addString(t, d.names.Find(text)); !d.Failed() {
		*slot = uint32(number + 1)
	}
	return number, true
}

// The functions with a place read the value that begins there and return where it ends. Each
// tries the most common form of the body's format first, without the general reader, so that the
// place stays in a register. Every other form is the general reader's.

// text reads a string of a span.
func (d *values) text(at int) (t spantable.Text, next int) {
	if d.format.isByName() {
		if t, next := msgpack.CommonStr(d.body, at); next != 0 {
			return spantable.Text(t), next
		}
	} else if n, next := msgpack.CommonUint(d.body, at); next != 0 && n < uint64(len(d.strings.texts)) {
		return d.strings.texts[n], next
	}
	d.Seek(at)
	return d.anyText(), d.At()
}

// anyText reads a string of any form.
func (d *values) anyText() spantable.Text {
	if d.format.isByName() {
		return d.looseText()
	}
	if n := d.number(); !d.Failed() {
		return d.strings.texts[n]
	}
	return spantable.Text{}
}

// anyLabel reads the name of a tag.
func (d *values) anyLabel() spantable.Label {
	if d.format.isByName() {
		return d.names.Find(bytesOf(d.body, d.looseText()))
	}
	if n := d.number(); !d.Failed() {
		return d.strings.labels[n]
	}
	return spantable.Other
}

// number reads the number of a string, or in v1.0 a string that the body may not have had.
func (d *values) number() (number int) {
	if d.format == FormatV1 && msgpack.IsStr(d.Lead()) {
		if text := d.Str(); !d.Failed() {
			number, _ = d.numberOf(spantable.Text(text))
		}
		return number
	}
	n := d.Uint(math.MaxUint64)
	if n >= uint64(len(d.strings.texts)) {
		d.Fail()
		return 0
	}
	return int(n)
}

// looseText reads what the older formats take for a string: one, bytes, or nothing.
func (d *values) looseText() spantable.Text {
	switch lead := d.Lead(); {
	case msgpack.IsStr(lead):
		return spantable.Text(d.Str())
	case d.IsNil():
		return spantable.Text{}
	}
	return spantable.Text(d.Bin())
}

// id reads an identifier, which some languages write as a signed number.
func (d *values) id(at int) (v uint64, next int) {
	if v, next = msgpack.CommonInt(d.body, at); next != 0 {
		return v, next
	}
	d.Seek(at)
	if d.format == FormatV1 {
		v = d.unsigned()
	} else if !d.IsNil() {
		v, _ = d.Integer()
	}
	return v, d.At()
}

// time reads a start or a duration.
func (d *values) time(at int) (v uint64, next int) {
	if v, next = msgpack.CommonInt(d.body, at); next != 0 && v <= math.MaxInt64 {
		return v, next
	}
	d.Seek(at)
	if d.format == FormatV1 {
		v = d.unsigned()
	} else {
		v = uint64(d.signed())
	}
	return v, d.At()
}

// status reads the error of a span, which is no more than 32 bits. What a negative one means
// depends on the format, and no tracer writes it.
func (d *values) status(at int) (s spantable.Status, next int) {
	v, next := msgpack.CommonInt(d.body, at)
	if next == 0 || v > math.MaxInt32 || d.format == FormatV1 {
		d.Seek(at)
		if d.format != FormatV1 {
			v = uint64(d.signed())
		} else if v = 0; d.Bool() {
			v = 1
		}
		next = d.At()
	}
	if v > math.MaxInt32 {
		d.Fail()
	}
	if v != 0 {
		return spantable.StatusError, next
	}
	return spantable.StatusUnset, next
}

// numberBits reads an integer or a float64 as the bits of a float64, or nothing.
func (d *values) numberBits() uint64 {
	switch {
	case d.Lead() == msgpack.Float64:
		return math.Float64bits(d.Float())
	case d.IsNil():
		return 0
	}
	v, isNegative := d.Integer()
	if isNegative {
		return math.Float64bits(float64(int64(v)))
	}
	return math.Float64bits(float64(v))
}

// unsigned reads a number that is not negative.
func (d *values) unsigned() uint64 { return d.Uint(math.MaxUint64) }

// signed reads a number that fits int64, or nothing.
func (d *values) signed() int64 {
	if d.IsNil() {
		return 0
	}
	return d.Int()
}

// priority reads what is no more than 32 bits.
func (d *values) priority() int32 {
	v := d.signed()
	if v < math.MinInt32 || v > math.MaxInt32 {
		d.Fail()
	}
	return int32(v)
}

// isStated stands for the kinds of values that each states itself, as in v1.0.
const isStated = spantable.IsNothing

// commonKind reads the type of a v1 value that states it, if it is a text or a float64.
func commonKind(b []byte, at int) (as spantable.Value, next int) {
	switch {
	case at > len(b)-2:
		return isStated, 0
	case b[at] == 1:
		return spantable.IsText, at + 1
	case b[at] == 3 && b[at+1] == msgpack.Float64:
		return spantable.IsNumber, at + 1
	}
	return isStated, 0
}

// attribute reads a type and a value of it, as v1.0 has them.
func (d *values) attribute(depth int) (t spantable.Tag) {
	if depth > msgpack.MaxDepth {
		d.Fail()
		return t
	}
	switch d.Uint(math.MaxUint32) {
	case 1:
		t.Value, t.Bits = spantable.IsText, spantable.TextBits(d.anyText())
	case 2:
		if t.Value = spantable.IsBool; d.Bool() {
			t.Bits = 1
		}
	case 3:
		t.Value, t.Bits = spantable.IsNumber, math.Float64bits(d.Float())
	case 4:
		t.Value, t.Bits = spantable.IsInteger, uint64(d.Int())
	case 5:
		t.Value, t.Bits = spantable.IsBytes, spantable.TextBits(spantable.Text(d.Bin()))
	case 6:
		t.Value = spantable.IsNested
		for n := d.groups(2); n > 0 && !d.Failed(); n-- {
			d.attribute(depth + 1)
		}
	case 7:
		t.Value = spantable.IsNested
		for n := d.groups(3); n > 0 && !d.Failed(); n-- {
			d.number()
			d.attribute(depth + 2)
		}
	default:
		d.Fail()
	}
	return t
}

// groups reads how many groups of so many elements follow in an array.
func (d *values) groups(of int) int {
	n := d.Array()
	if n%of != 0 {
		d.Fail()
	}
	return n / of
}

// skipStreamed steps over what we have no name for in v1.0, but numbers the strings in it, as
// whoever wrote it did.
func (d *values) skipStreamed(depth int) {
	elements := 0
	switch lead := d.Lead(); {
	case msgpack.IsStr(lead):
		d.number()
	case msgpack.IsArray(lead):
		elements = d.Array()
	case msgpack.IsMap(lead):
		elements = 2 * d.Map()
	default:
		d.Skip()
	}
	if elements > 0 && depth == 0 {
		d.Fail()
	}
	for ; elements > 0 && !d.Failed(); elements-- {
		d.skipStreamed(depth - 1)
	}
}
