package traces

import "math"

// The format of /v0.4/traces and /v0.3/traces: an array of traces, each an array
// of spans, each a map by names.

func (p *payload) walkV04() {
	for n := p.begin(); n > 0 && !p.bad; n-- {
		p.traceV04()
	}
	p.traces.end = p.at
}

func (p *payload) traceV04() {
	c := chunk{first: len(p.records), at: p.at}
	var o promoted
	for n := p.array(); n > 0 && !p.bad; n-- {
		if p.absent() {
			continue
		}
		rec := p.add(kindInternal)
		p.spanV04(rec, &o)
		o.reconcile(rec.parent)
	}
	o.hand(&p.facts)
	c.last, c.end, c.origin, c.priority, c.hasPriority = len(p.records), p.at, o.origin, o.priority, o.hasPriority
	p.addChunk(c)
}

// spanV04 reads a span. It and what it calls for a span's tags are half of counting:
// they keep where they are in a register, try what nearly every value is, and leave
// the rest to the reader.
func (p *payload) spanV04(rec *record, o *promoted) {
	part := 0 // of the tags, how many kinds were read
	n := p.mapping()
	b, at, limit := startOf(p.b), p.at, len(p.b)-ahead
	f := fieldOther // the one before
	for ; n > 0; n-- {
		expected := &p.layout[f%fields]
		f = *expected
		if name := &leads[f%fields]; at <= limit && name.is(b, at) {
			at += int(name.n)
		} else {
			p.at = at
			f = fieldNamed(p.name().of(p.b))
			*expected = f
			at = p.at
		}
		p.at = at // for the reader, where it is needed
		quick := at <= limit
		switch f {
		case fieldService:
			if quick {
				if s, next := textAt(b, at); next != 0 && next <= len(p.b) {
					rec.service, at = s, next
					continue
				}
			}
			rec.service = p.chars()
		case fieldName:
			if quick {
				if s, next := textAt(b, at); next != 0 && next <= len(p.b) {
					rec.name, at = s, next
					continue
				}
			}
			rec.name = p.chars()
		case fieldResource:
			if quick {
				if s, next := textAt(b, at); next != 0 && next <= len(p.b) {
					rec.resource, at = s, next
					continue
				}
			}
			rec.resource = p.chars()
		case fieldType:
			if quick {
				if s, next := textAt(b, at); next != 0 && next <= len(p.b) {
					rec.kindOfWork, at = s, next
					continue
				}
			}
			rec.kindOfWork = p.chars()
		case fieldTraceID:
			if quick {
				if _, next := intAt(b, at); next != 0 {
					at = next
					continue
				}
			}
			p.id()
		case fieldSpanID:
			if quick {
				if v, next := intAt(b, at); next != 0 {
					rec.id, at = v, next
					continue
				}
			}
			rec.id = p.id()
		case fieldParentID:
			if quick {
				if v, next := intAt(b, at); next != 0 {
					rec.parent, at = v, next
					continue
				}
			}
			rec.parent = p.id()
		case fieldStart:
			if quick {
				if v, next := intAt(b, at); next != 0 && int64(v) >= 0 {
					rec.start, at = v, next
					continue
				}
			}
			rec.start = uint64(p.signed())
		case fieldDuration:
			if quick {
				if v, next := intAt(b, at); next != 0 && int64(v) >= 0 {
					rec.duration, at = v, next
					continue
				}
			}
			rec.duration = uint64(p.signed())
		case fieldError:
			if quick {
				if v, next := intAt(b, at); next != 0 && v <= math.MaxInt32 {
					rec.failed, at = v != 0, next
					continue
				}
			}
			rec.failed = p.status() != 0
		case fieldMeta:
			p.part(&part, 1)
			p.metaV04(rec, o)
		case fieldMetrics:
			p.part(&part, 2)
			p.metricsV04(o)
		case fieldMetaStruct:
			p.part(&part, 3)
			p.metaStruct()
		case fieldLinks, fieldEvents:
			p.listed()
		default:
			p.skip()
		}
		if at = p.at; p.bad {
			return
		}
	}
	p.at = at
	rec.last = uint32(len(p.tags))
}

// listed steps over a span's links or events: a list of maps.
func (p *payload) listed() {
	for n := p.array(); n > 0 && !p.bad; n-- {
		if p.absent() {
			continue
		}
		for n := 2 * p.mapping(); n > 0 && !p.bad; n-- {
			p.skip()
		}
	}
}

// part keeps what goes before what: of two tags of one name the agent keeps the
// later one, but in v0.7 by their kind and not by their place.
func (p *payload) part(read *int, next int) {
	if p.format == FormatV07 && next <= *read {
		p.fail()
	}
	*read = next
}

// status reads the error of a span, which is no more than 32 bits. What a negative
// one means depends on the format, and no tracer writes it.
func (p *payload) status() int32 {
	v := p.signed()
	if v < 0 || v > math.MaxInt32 {
		p.fail()
	}
	return int32(v)
}

// priority reads what is no more than 32 bits.
func (p *payload) priority() int32 {
	v := p.signed()
	if v < math.MinInt32 || v > math.MaxInt32 {
		p.fail()
	}
	return int32(v)
}

// metaV04 reads the tags that are text. What is noted of one is noted of all, wanted
// or not, and then kept or not: which ones are wanted is nothing that a processor can
// foretell, and a wrong guess costs as much as reading a tag.
func (p *payload) metaV04(rec *record, o *promoted) {
	if p.absent() {
		return
	}
	n := p.mapping()
	b, at, limit, f := startOf(p.b), p.at, len(p.b)-ahead, &p.labels.finder
	tags, kept := p.tags[:cap(p.tags)], len(p.tags)
	set := uint64(0) // the fixed labels among them
	for ; n > 0; n-- {
		if kept >= len(tags) {
			tags = p.moreTags(tags)
		}
		var l label
		var value text
		next := 0
		if at <= limit {
			if size := int(byteAt(b, at) - 0xa0); size < 32 {
				first, last := endsAt(b, at+1, size)
				l = f.among(size, first, last)
				if size > 16 && l != labelOther {
					l = f.exactly(l, p.b[at+1:at+1+size])
				}
				value, next = textAt(b, at+1+size)
			}
		}
		if next == 0 || next > len(p.b) {
			p.at = at
			l, value = p.slowPair()
			next = p.at
		}
		if p.bad {
			return
		}
		at = next
		said := value.bits()
		tags[kept] = tag{label: l, bits: said}
		p.said[l] = said
		set |= 1 << (l & 63) & fixed[l>>6&3]
		kept += wanted(l)
		p.read += int(value.n) & -wanted(l)
	}
	p.at, p.tags = at, tags[:kept]
	p.charge(text{}) // all of them
	p.promote(o, rec, set)
}

func (p *payload) slowPair() (l label, value text) {
	name := p.chars()
	value = p.chars()
	l = p.labels.find(name.of(p.b))
	if l != labelOther && value.n > maxTagText {
		p.fail()
	}
	return l, value
}

// moreTags makes room for more, and says that there can be none by making p bad.
func (p *payload) moreTags(tags []tag) []tag {
	if len(tags) >= p.most.tags {
		p.fail()
		return tags
	}
	return append(tags, make([]tag, max(64, min(len(tags), p.most.tags-len(tags))))...)
}

// metricsV04 reads the tags that are numbers, in the same way.
func (p *payload) metricsV04(o *promoted) {
	if p.absent() {
		return
	}
	n := p.mapping()
	b, at, limit, f := startOf(p.b), p.at, len(p.b)-ahead, &p.labels.finder
	tags, kept := p.tags[:cap(p.tags)], len(p.tags)
	for ; n > 0; n-- {
		if kept >= len(tags) {
			tags = p.moreTags(tags)
		}
		var l label
		var value uint64
		next := 0
		if at <= limit {
			if size := int(byteAt(b, at) - 0xa0); size < 32 {
				first, last := endsAt(b, at+1, size)
				l = f.among(size, first, last)
				if size > 16 && l != labelOther {
					l = f.exactly(l, p.b[at+1:at+1+size])
				}
				value, next = floatAt(b, at+1+size)
			}
		}
		if next == 0 {
			p.at = at
			l = f.find(p.chars().of(p.b))
			value = math.Float64bits(p.number())
			next = p.at
		}
		if p.bad {
			return
		}
		at = next
		tags[kept] = tag{label: l, kind: isNumber, bits: value}
		kept += wanted(l)
		if l == labelPriority {
			o.priority, o.hasPriority = int32(math.Float64frombits(value)), true
		}
	}
	p.at, p.tags = at, tags[:kept]
}

func (p *payload) metaStruct() {
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		key := p.chars()
		value := p.bin()
		if l := p.labels.find(key.of(p.b)); l != labelOther && !p.bad {
			p.tag(tag{label: l, kind: isBytes, bits: value.bits()})
		}
	}
}
