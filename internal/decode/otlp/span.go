package otlp

import (
	"encoding/binary"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// span reads a span, of which is known where it lies.
func (r *Request) span(place Place) {
	r.Tags = slices.Grow(r.Tags, attributesAhead)
	b, end := r.Body[:place.End], int(place.End)
	s := r.AddSpan(spantable.KindUnspecified)
	finish := uint64(0)
	for at := int(place.Body); at < end; {
		if b[at] == byte(spanAttributes) {
			if at = r.commonAttributes(b, at, byte(spanAttributes), r.ofSpans); at == end {
				break
			}
		}
		f, next := readField(b, at)
		if next == 0 {
			r.Fail(ErrUnread)
			return
		}
		isRead := true
		switch f.tag {
		case spanTraceID:
			isRead = readTraceID(&place, b[f.at:next])
		case spanID:
			s.ID, isRead = readID(b[f.at:next])
		case spanParentID:
			s.Parent, isRead = readID(b[f.at:next])
		case spanTraceState:
			place.State, place.StateField = textAt(f.at, next), uint32(at)
		case spanName:
			s.Name = textAt(f.at, next)
		case spanKind:
			s.Kind = kindNumbered(f.value)
		case spanStart:
			s.Start = f.value
		case spanEnd:
			finish = f.value
		case spanAttributes:
			r.attribute(b[:next], f.at, r.ofSpans)
		case spanEvents:
			isRead = isMessage(b[:next], f.at, messageEvent)
		case spanLinks:
			isRead = isMessage(b[:next], f.at, messageLink)
		case spanStatus:
			isRead = readStatus(&s.Status, b[:next], f.at)
		}
		if !isRead {
			r.Fail(ErrUnread)
			return
		}
		at = next
	}
	if finish > s.Start {
		s.Duration = finish - s.Start
	}
	if s.Last = uint32(len(r.Tags)); len(r.Tags) > r.Limits.Tags {
		r.Fail(spantable.ErrTooMuch)
	}
	r.Places = append(r.Places, place)
}

// readTraceID reads the id of a trace, which has 16 bytes where it is there.
func readTraceID(to *Place, id []byte) bool {
	to.TraceHigh, to.TraceLow = 0, 0
	if len(id) == 16 {
		to.TraceHigh, to.TraceLow = binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[8:])
	}
	return len(id) == 16 || len(id) == 0
}

// readID reads the id of a span, which has eight bytes where it is there.
func readID(id []byte) (uint64, bool) {
	if len(id) == 8 {
		return binary.BigEndian.Uint64(id), true
	}
	return 0, len(id) == 0
}

// kindNumbered is the kind of a number.
func kindNumbered(n uint64) spantable.Kind {
	if k := uint32(n); 0 < k && k <= uint32(spantable.KindConsumer) { // it has 32 bits, whatever was written
		return spantable.Kind(k)
	}
	return spantable.KindUnspecified
}

// readStatus reads how a span ended.
func readStatus(to *spantable.Status, b []byte, at int) bool {
	for at < len(b) {
		f, next := readField(b, at)
		if next == 0 {
			return false
		}
		if f.tag == statusCode {
			*to = spantable.Status(min(uint32(f.value), uint32(spantable.StatusOther)))
		}
		at = next
	}
	return true
}
