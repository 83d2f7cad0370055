package traces

import (
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
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
)

// fieldsV05 is how many of them a span of v0.5 has.
const fieldsV05 = fieldType

// spanFields is what the other formats call the fields: a name in v0.4 and v0.7, a
// number in v1.0. An empty name or a 0 stands for a field that the format does not have.
var spanFields = [...]struct {
	name   string
	number uint8
}{
	fieldService:    {"service", 1},
	fieldName:       {"name", 2},
	fieldResource:   {"resource", 3},
	fieldTraceID:    {"trace_id", 0},
	fieldSpanID:     {"span_id", 4},
	fieldParentID:   {"parent_id", 5},
	fieldStart:      {"start", 6},
	fieldDuration:   {"duration", 7},
	fieldError:      {"error", 8},
	fieldMeta:       {"meta", 0},
	fieldMetrics:    {"metrics", 0},
	fieldType:       {"type", 10},
	fieldMetaStruct: {"meta_struct", 0},
	fieldLinks:      {"span_links", 11},
	fieldEvents:     {"span_events", 12},
	fieldAttributes: {"", 9},
	fieldEnv:        {"", 13},
	fieldVersion:    {"", 14},
	fieldComponent:  {"", 15},
	fieldKind:       {"", 16},
}

// fieldsByName and fieldsByNumber find them.
var fieldsByName, fieldsByNumber = func() (*nameTable, [32]field) {
	names, numbers := make([]string, len(spanFields)), [32]field{}
	for f, called := range spanFields {
		names[f] = called.name
		numbers[called.number] = field(f)
	}
	numbers[0] = fieldOther
	return newNameTable(names), numbers
}()

// fieldRoom is more than there are fields, and a power of two.
const fieldRoom = 32

// writtenNames are the names of the fields as they are nearly always written, head and
// all, in no more than sixteen bytes. Where there is no name, there is what begins none.
var writtenNames = func() (all [fieldRoom]struct {
	head head
	n    int
},
) {
	for f, called := range spanFields {
		lead := byte(msgpack.Unused)
		if called.name != "" {
			lead = msgpack.FixStr | byte(len(called.name))
		}
		written := string([]byte{lead}) + called.name
		all[f].head, all[f].n = headOf(written), len(written)
	}
	return all
}()

// fieldNamed is the field of a name.
func fieldNamed(name []byte) field { return field(fieldsByName.find(name)) }

// fieldNumbered is the field of a number.
func fieldNumbered(number uint64) field {
	if number < uint64(len(fieldsByNumber)) {
		return fieldsByNumber[number]
	}
	return fieldOther
}

// readField reads the value of a field, which begins at a place of the body, and returns
// where it ends.
func (p *payload) readField(rec *record, f field, at int) (next int) {
	switch f {
	case fieldService:
		rec.service, next = p.text(at)
	case fieldName:
		rec.name, next = p.text(at)
	case fieldResource:
		rec.resource, next = p.text(at)
	case fieldType:
		rec.kindOfWork, next = p.text(at)
	case fieldTraceID:
		p.traceID.low, next = p.id(at)
	case fieldSpanID:
		rec.id, next = p.id(at)
	case fieldParentID:
		rec.parent, next = p.id(at)
	case fieldStart:
		rec.start, next = p.time(at)
	case fieldDuration:
		rec.duration, next = p.time(at)
	case fieldError:
		rec.failed, next = p.isError(at)
	case fieldEnv, fieldVersion, fieldComponent: // of the span alone
		_, next = p.text(at)
	default:
		p.Seek(at)
		p.readParts(rec, f)
		next = p.At()
	}
	return next
}

// readParts reads a field that has parts, and what is rare.
func (p *payload) readParts(rec *record, f field) {
	switch f {
	case fieldMeta:
		p.readTags(rec, p.pairs(f), isText)
	case fieldMetrics:
		p.readTags(rec, p.pairs(f), isNumber)
	case fieldMetaStruct:
		p.readTags(rec, p.pairs(f), isBytes)
	case fieldAttributes:
		p.tags = p.tags[:rec.first] // a second list replaces the first
		p.readTags(rec, p.triples(), isStated)
	case fieldLinks, fieldEvents:
		p.each(p.linkReader(f))
	case fieldKind:
		rec.kind = kindNumbered(p.number())
	default:
		p.skipValue()
	}
}

// linkReader reads a link or an event of a span.
func (p *payload) linkReader(f field) func(*payload) {
	switch {
	case p.format != FormatV1:
		return (*payload).skipMap
	case f == fieldLinks:
		return (*payload).linkV1
	}
	return (*payload).eventV1
}

// each reads the elements of an array.
func (p *payload) each(read func(*payload)) {
	for n := p.Array(); n > 0 && !p.Failed(); n-- {
		read(p)
	}
}
