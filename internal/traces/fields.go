package traces

import "github.com/spanstatsd/spanstatsd/internal/msgpack"

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

// writtenNames are the names as they are nearly always written, head and all. Where there
// is no name, there is nothing.
var writtenNames = func() (all [len(spanFields)]string) {
	for f, called := range spanFields {
		if called.name != "" {
			all[f] = string([]byte{msgpack.FixStr | byte(len(called.name))}) + called.name
		}
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

// readField reads the value of a field.
func (p *payload) readField(rec *record, f field) {
	switch f {
	case fieldService:
		rec.service = p.as.text(p)
	case fieldName:
		rec.name = p.as.text(p)
	case fieldResource:
		rec.resource = p.as.text(p)
	case fieldType:
		rec.kindOfWork = p.as.text(p)
	case fieldTraceID:
		p.as.id(p)
	case fieldSpanID:
		rec.id = p.as.id(p)
	case fieldParentID:
		rec.parent = p.as.id(p)
	case fieldStart:
		rec.start = p.as.time(p)
	case fieldDuration:
		rec.duration = p.as.time(p)
	case fieldError:
		rec.failed = p.as.isError(p)
	case fieldMeta:
		p.readTags(rec, p.pairs(f), p.as.texts)
	case fieldMetrics:
		p.readTags(rec, p.pairs(f), p.as.numbers)
	case fieldMetaStruct:
		p.readTags(rec, p.pairs(f), &namedBytes)
	case fieldAttributes:
		p.tags = p.tags[:rec.first] // a second list replaces the first
		p.readTags(rec, p.triples(), &attributes)
	case fieldLinks:
		p.each(p.as.link)
	case fieldEvents:
		p.each(p.as.event)
	case fieldKind:
		rec.kind = kindNumbered(p.number())
	case fieldEnv, fieldVersion, fieldComponent: // of the span alone
		p.as.text(p)
	default:
		p.as.other(p)
	}
}

// each reads the elements of an array.
func (p *payload) each(read func(*payload)) {
	for n := p.Array(); n > 0 && !p.Failed(); n-- {
		read(p)
	}
}
