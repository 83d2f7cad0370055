package traces

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// readTags reads n tags of a kind and keeps those that some rule asks for.
func (p *payload) readTags(rec *record, n int, kind kindOf) {
	first, at := len(p.tags), p.At()
	p.tags = slices.Grow(p.tags, min(n, p.limits.tags-first)+1)
	for n > 0 && !p.Failed() {
		switch {
		case !p.isByName():
			n, at = p.numberedTags(kind, n, at)
		case kind == isText || kind == isNumber:
			n, at = p.namedTags(kind, n, at)
		}
		if n > 0 {
			p.Seek(at)
			p.anyTag(kind)
			n, at = n-1, p.At()
		}
		if len(p.tags) > p.limits.tags {
			p.Fail()
		}
	}
	p.Seek(at)
	if rec.last = uint32(len(p.tags)); p.Failed() {
		return
	}
	set, read := uint64(0), p.tags[first:] // the fixed labels among them
	for i := range read {
		t := &read[i]
		if t.isWritten() {
			p.chargeTag(t.text())
		}
		p.said[t.label] = t.bits
		set |= 1 << t.label
	}
	if p.format != FormatV1 {
		p.noteOfTrace(rec, set, kind)
	}
}

// window is what has to lie ahead of a tag that namedTags reads: the longest name and text
// that it takes, so that nothing but their lengths has to be looked at.
const window = 1 + 31 + 2 + 255

// namedTags reads tags of the most common forms, up to the first of another form, and
// returns how many are left and where they begin. Which ones are wanted is nothing that a
// processor can foretell: so all are noted, and then kept or not.
func (p *payload) namedTags(kind kindOf, n, at int) (left, next int) {
	body, table := p.body, p.labels.table
	tags, kept := p.tags[:cap(p.tags)], len(p.tags)
	for ; n > 0 && kept < len(tags) && at <= len(body)-window; n-- {
		w := (*[window]byte)(body[at:])
		size := int(w[0] - msgpack.FixStr)
		if size > 31 {
			break
		}
		number, isSure := table.among(headAt((*[headLen]byte)(w[1:]), size), size)
		if !isSure {
			number = table.find(w[1 : 1+size])
		}
		bits, end, lead := uint64(0), 0, w[1+size]
		switch {
		case kind == isNumber:
			bits, end = msgpack.CommonNumber(body, at+1+size)
		case lead-msgpack.FixStr < 32:
			value := msgpack.Text{At: uint32(at + 2 + size), Len: uint32(lead - msgpack.FixStr)}
			bits, end = bitsOf(value), int(value.At+value.Len)
		case lead == msgpack.Str8:
			value := msgpack.Text{At: uint32(at + 3 + size), Len: uint32(w[2+size])}
			bits, end = bitsOf(value), int(value.At+value.Len)
		}
		if end == 0 {
			break
		}
		tags[kept] = tag{label(number), kind, bits}
		kept += wanted(label(number))
		at = end
	}
	p.tags = tags[:kept]
	return n, at
}

// numberedTags is namedTags for the formats that number strings.
func (p *payload) numberedTags(kind kindOf, n, at int) (left, next int) {
	body, numbers, strings := p.body, p.numbers, p.strings
	tags, kept := p.tags[:cap(p.tags)], len(p.tags)
	for ; n > 0 && kept < len(tags); n-- {
		name, behind := msgpack.CommonUint(body, at)
		if behind == 0 || name >= uint64(len(numbers)) {
			break
		}
		as, next, bits := kind, behind, uint64(0)
		if kind == isStated {
			as, next = commonKind(body, next)
		}
		if as == isText {
			if bits, next = msgpack.CommonUint(body, next); bits >= uint64(len(strings)) {
				break
			}
			bits = bitsOf(strings[bits])
		} else if as == isNumber {
			bits, next = msgpack.CommonNumber(body, next)
		} else {
			break
		}
		if next == 0 {
			break
		}
		tags[kept] = tag{numbers[name], as, bits}
		kept += wanted(numbers[name])
		at = next
	}
	p.tags = tags[:kept]
	return n, at
}

// anyTag reads a tag of any form.
func (p *payload) anyTag(kind kindOf) {
	l := p.anyLabel()
	t := tag{kind: kind}
	switch kind {
	case isText:
		t.bits = bitsOf(p.anyText())
	case isNumber:
		t.bits = p.numberBits()
	case isBytes:
		t.bits = bitsOf(p.Bin())
	default:
		t = p.anyValue(0)
	}
	if t.label = l; l != labelOther {
		p.tags = append(p.tags, t)
	}
}

// commonKind reads the type of a value that states it, if it is a text or a float64.
func commonKind(b []byte, at int) (k kindOf, next int) {
	switch {
	case at > len(b)-2:
		return isStated, 0
	case b[at] == 1:
		return isText, at + 1
	case b[at] == 3 && b[at+1] == msgpack.Float64:
		return isNumber, at + 1
	}
	return isStated, 0
}

// chargeTag charges the text of a tag that was read.
func (p *payload) chargeTag(t msgpack.Text) {
	if p.charge(t); t.Len > maxTagText {
		p.Fail()
	}
}

// pairs reads how many tags of a kind follow. Of two tags of one name the agent keeps
// the later one, but in v0.7 it goes by their kinds, in this order.
func (p *payload) pairs(kind field) int {
	if p.isV07() && kind <= p.lastTags {
		p.Fail()
	}
	p.lastTags = kind
	if p.format != FormatV05 && kind != fieldMetaStruct && p.IsNil() {
		return 0
	}
	return p.Map()
}
