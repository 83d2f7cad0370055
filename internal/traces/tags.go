package traces

import (
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// tagReader reads tags of one form. common reads one that begins at a place of the body and
// has the most common form, and returns where it ends, or 0; any reads every other.
type tagReader struct {
	kind   kindOf // of all that it reads, but in v1.0
	common func(p *payload, at int) (tag, int)
	any    func(*payload) tag
}

// readTags reads n tags and keeps those that some rule asks for. Which ones are wanted is
// nothing that a processor can foretell: so all are noted, and then kept or not.
func (p *payload) readTags(rec *record, n int, read *tagReader) {
	at := p.At()
	tags, kept := p.tags[:cap(p.tags)], len(p.tags)
	charged, set := p.charged, uint64(0) // the fixed labels among them
	for ; n > 0; n-- {
		t, next := read.common(p, at)
		if next == 0 {
			p.Seek(at)
			t = read.any(p)
			next = p.At()
		}
		if kept == len(tags) {
			tags = p.moreTags(tags)
		}
		isWanted := wanted(t.label)
		size := 0
		if t.isWritten() {
			size = int(t.text().Len) & -isWanted
			charged += size
		}
		if p.Failed() || size > maxTagText {
			p.Fail()
			return
		}
		at = next
		tags[kept] = t
		kept += isWanted
		p.said[t.label] = t.bits
		set |= 1 << t.label
	}
	p.Seek(at)
	p.tags, p.charged = tags[:kept], charged
	if p.charge(msgpack.Text{}); p.format != FormatV1 {
		p.noteOfTrace(rec, set, read.kind)
	}
	rec.last = uint32(kept)
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

// The forms of tags: by names in v0.4 and v0.7, by the numbers of strings in v0.5, and
// attributes in v1.0.
var (
	namedTexts = tagReader{
		kind: isText,
		common: func(p *payload, at int) (t tag, next int) {
			name, at := msgpack.CommonStr(p.body, at)
			if at == 0 {
				return t, 0
			}
			t.label = p.labels.find(name.Of(p.body))
			value, next := msgpack.CommonStr(p.body, at)
			t.bits = bitsOf(value)
			return t, next
		},
		any: func(p *payload) tag {
			l := p.labels.find(p.looseText().Of(p.body))
			return tag{label: l, bits: bitsOf(p.looseText())}
		},
	}
	namedNumbers = tagReader{
		kind: isNumber,
		common: func(p *payload, at int) (t tag, next int) {
			name, at := msgpack.CommonStr(p.body, at)
			if at == 0 {
				return t, 0
			}
			t.label, t.kind = p.labels.find(name.Of(p.body)), isNumber
			t.bits, next = msgpack.CommonNumber(p.body, at)
			return t, next
		},
		any: func(p *payload) tag {
			l := p.labels.find(p.looseText().Of(p.body))
			return tag{label: l, kind: isNumber, bits: p.numberBits()}
		},
	}
	namedBytes = tagReader{
		kind:   isBytes,
		common: func(*payload, int) (tag, int) { return tag{}, 0 },
		any: func(p *payload) tag {
			l := p.labels.find(p.looseText().Of(p.body))
			return tag{label: l, kind: isBytes, bits: bitsOf(p.Bin())}
		},
	}
	indexedTexts = tagReader{
		kind: isText,
		common: func(p *payload, at int) (t tag, next int) {
			name, at := msgpack.CommonUint(p.body, at)
			value, next := msgpack.CommonUint(p.body, at)
			if at == 0 || name >= uint64(len(p.numbers)) || value >= uint64(len(p.strings)) {
				return t, 0
			}
			return tag{label: p.numbers[name], bits: bitsOf(p.strings[value])}, next
		},
		any: func(p *payload) tag {
			l := p.indexedLabel()
			return tag{label: l, bits: bitsOf(p.indexedText())}
		},
	}
	indexedNumbers = tagReader{
		kind: isNumber,
		common: func(p *payload, at int) (t tag, next int) {
			name, at := msgpack.CommonUint(p.body, at)
			if at == 0 || name >= uint64(len(p.numbers)) {
				return t, 0
			}
			t.label, t.kind = p.numbers[name], isNumber
			t.bits, next = msgpack.CommonNumber(p.body, at)
			return t, next
		},
		any: func(p *payload) tag {
			l := p.indexedLabel()
			return tag{label: l, kind: isNumber, bits: p.numberBits()}
		},
	}
)

// looseText reads what the older formats take for a string: one, bytes, or nothing.
func (p *payload) looseText() msgpack.Text {
	switch lead := p.Lead(); {
	case msgpack.IsStr(lead):
		return p.Str()
	case p.IsNil():
		return msgpack.Text{}
	}
	return p.Bin()
}
