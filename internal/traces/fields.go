package traces

import "encoding/binary"

// field is one of a span in the formats that name them.
type field uint8

const (
	fieldOther field = iota // what we have no use for
	fieldService
	fieldName
	fieldResource
	fieldType
	fieldTraceID
	fieldSpanID
	fieldParentID
	fieldStart
	fieldDuration
	fieldError
	fieldMeta
	fieldMetrics
	fieldMetaStruct
	fieldLinks
	fieldEvents
	fields
)

var fieldNames = [fields]string{
	"", "service", "name", "resource", "type", "trace_id", "span_id", "parent_id", "start", "duration", "error",
	"meta", "metrics", "meta_struct", "span_links", "span_events",
}

func fieldNamed(name []byte) field {
	switch string(name) {
	case "service":
		return fieldService
	case "name":
		return fieldName
	case "resource":
		return fieldResource
	case "type":
		return fieldType
	case "trace_id":
		return fieldTraceID
	case "span_id":
		return fieldSpanID
	case "parent_id":
		return fieldParentID
	case "start":
		return fieldStart
	case "duration":
		return fieldDuration
	case "error":
		return fieldError
	case "meta":
		return fieldMeta
	case "metrics":
		return fieldMetrics
	case "meta_struct":
		return fieldMetaStruct
	case "span_links":
		return fieldLinks
	case "span_events":
		return fieldEvents
	}
	return fieldOther
}

// lead is a field's name as it is nearly always written, head and all, in two words
// that overlap.
type lead struct {
	mask          uint64 // of both words, where it has less than eight bytes
	first, second uint64
	behind        uint8 // where the second word begins
	n             uint8
}

var leads = func() (all [fields]lead) {
	for f, name := range fieldNames {
		var room [16]byte
		written := append(room[:0], 0xa0|byte(len(name)))
		written = append(written, name...)
		n := len(written)
		l := &all[f]
		l.n, l.mask = uint8(n), ^uint64(0)
		if n < 8 {
			l.mask >>= 8 * (8 - n)
		} else {
			l.behind = uint8(n - 8)
		}
		l.first = binary.LittleEndian.Uint64(room[:])
		l.second = binary.LittleEndian.Uint64(room[l.behind:])
	}
	all[fieldOther] = lead{mask: ^uint64(0), first: 0xc1} // which begins no name
	return all
}()

// layout is, by field, the one that stood behind it last. The spans of a tracer have
// them all in the same order, so that what comes next need not be found out, only
// looked at: where it ends is then known without having read it.
type layout [fields]field

// is reports whether that field's name stands there. The caller knows of ahead bytes.
func (l *lead) is(b start, at int) bool {
	first, second := word(b, at)^l.first, word(b, at+int(l.behind))^l.second
	return (first|second)&l.mask == 0
}
