package traces

import "github.com/spanstatsd/spanstatsd/internal/msgpack"

// readTags reads n tags of a kind and keeps those that some rule asks for. Which ones are
// wanted is nothing that a processor can foretell: so all are noted, and then kept or not.
func (p *payload) readTags(rec *record, n int, kind kindOf) {
	at, tags, kept := p.At(), p.tags[:cap(p.tags)], len(p.tags)
	for ; n > 0; n-- {
		t, next := tag{}, 0
		if kind == isText || kind == isStated {
			t, next = p.commonTag(at)
		}
		if next == 0 {
			if t, next = p.readTag(kind, at); p.Failed() {
				return
			}
		}
		at = next
		if kept == len(tags) {
			if tags = p.moreTags(tags); p.Failed() {
				return
			}
		}
		tags[kept] = t
		kept += wanted(t.label)
	}
	p.Seek(at)
	read := tags[len(p.tags):kept]
	p.tags, rec.last = tags[:kept], uint32(kept)
	set := uint64(0) // the fixed labels among them
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

// chargeTag charges the text of a tag that was read.
func (p *payload) chargeTag(t msgpack.Text) {
	if p.charge(t); t.Len > maxTagText {
		p.Fail()
	}
}

// readTag reads a tag that begins at a place of the body, and returns where it ends.
func (p *payload) readTag(kind kindOf, at int) (t tag, next int) {
	l, at := p.label(at)
	bits := uint64(0)
	switch kind {
	case isText:
		value, next := p.text(at)
		return tag{label: l, bits: bitsOf(value)}, next
	case isNumber:
		bits, next = p.numberBits(at)
	case isBytes:
		p.Seek(at)
		bits, next = bitsOf(p.Bin()), p.At()
	default:
		kind, bits, next = p.statedValue(at)
	}
	return tag{l, kind, bits}, next
}

// commonTag reads what most tags are, a name and a text of the most common forms. It
// returns 0 for every other tag.
func (p *payload) commonTag(at int) (t tag, next int) {
	if p.isByName() {
		name, at := msgpack.CommonStr(p.body, at)
		value, next := msgpack.CommonStr(p.body, at)
		if at == 0 || next == 0 {
			return t, 0
		}
		return tag{label: p.labels.find(p.body, name), bits: bitsOf(value)}, next
	}
	name, at := msgpack.CommonUint(p.body, at)
	if p.format == FormatV1 {
		if at == len(p.body) || p.body[at] != 1 || at == 0 {
			return t, 0
		}
		at++ // behind the type
	}
	value, next := msgpack.CommonUint(p.body, at)
	if at == 0 || next == 0 || name >= uint64(len(p.numbers)) || value >= uint64(len(p.strings)) {
		return t, 0
	}
	return tag{label: p.numbers[name], bits: bitsOf(p.strings[value])}, next
}

// moreTags makes room for more, if there may be any.
func (p *payload) moreTags(tags []tag) []tag {
	if len(tags) >= p.limits.tags {
		p.Fail()
		return append(tags, tag{})
	}
	return append(tags, make([]tag, max(64, min(len(tags), p.limits.tags-len(tags))))...)
}

// pairs reads how many tags of a kind follow. Of two tags of one name the agent keeps
// the later one, but in v0.7 it goes by their kinds, in this order.
func (p *payload) pairs(kind field) int {
	if p.format == FormatV07 && kind <= p.lastTags {
		p.Fail()
	}
	p.lastTags = kind
	if p.format != FormatV05 && kind != fieldMetaStruct && p.IsNil() {
		return 0
	}
	return p.Map()
}
