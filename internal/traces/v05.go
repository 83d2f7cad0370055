package traces

import "math"

// The format of /v0.5/traces: a dictionary of strings, then traces as arrays of
// spans as arrays of twelve, with numbers for strings.

func (p *payload) walkV05() {
	p.array()
	p.dictionary()
	for n := p.begin(); n > 0 && !p.bad; n-- {
		p.traceV05()
	}
	p.traces.end = p.at
}

// dictionary reads the strings, and for each whether it names a tag that a rule
// asks for: once, and not for each span. Names that stand there twice only the
// agent can judge: it finds a string by its place.
func (p *payload) dictionary() {
	var seen [maxLabels]bool
	p.misplaced = -1
	for n := p.array(); n > 0 && !p.bad; n-- {
		s := p.chars()
		l := p.labels.find(s.of(p.b))
		if l != labelOther && seen[l] {
			p.fail()
		}
		if s.n == 0 && len(p.strings) > 0 {
			p.misplace()
		}
		seen[l] = true
		p.addString(s, l)
	}
}

// numbered reads the number of a string.
func (p *payload) numbered() int {
	v := p.unsigned()
	if v >= uint64(len(p.strings)) {
		p.fail()
		return 0
	}
	return int(v)
}

func (p *payload) stringV05() text {
	if n := p.numbered(); !p.bad {
		return p.strings[n]
	}
	return text{}
}

func (p *payload) traceV05() {
	c := chunk{first: len(p.records), at: p.at}
	var o promoted
	for n := p.array(); n > 0 && !p.bad; n-- {
		rec := p.add(kindUnknown)
		p.spanV05(rec, &o)
		o.reconcile(rec.parent)
	}
	o.hand(&p.facts)
	c.last, c.end, c.origin, c.priority, c.hasPriority = len(p.records), p.at, o.origin, o.priority, o.hasPriority
	p.addChunk(c)
}

func (p *payload) spanV05(rec *record, o *promoted) {
	start := p.at
	if !p.fieldsV05(rec) {
		if p.array() != 12 {
			p.fail()
			return
		}
		rec.service, rec.name, rec.resource = p.stringV05(), p.stringV05(), p.stringV05()
		p.id()
		rec.id, rec.parent = p.id(), p.id()
		rec.start, rec.duration = uint64(p.signed()), uint64(p.signed())
		rec.failed = p.status() != 0
	}
	p.metaV05(rec, o)
	p.metricsV05(o)
	rec.kindOfWork = p.stringV05()
	rec.last = uint32(len(p.tags))
	if p.misplaced > 0 {
		p.judge(rec, start)
	}
}

// fieldsV05 reads the head of a span and its first nine fields, if all of them are as
// nearly all are. They take less than the bytes that it asks for, also those that are
// looked at in vain: whether a value could be read is asked when all of them were.
func (p *payload) fieldsV05(rec *record) bool {
	b, at := startOf(p.b), p.at
	if len(p.b)-at < 2*ahead || byteAt(b, at) != 0x9c {
		return false
	}
	service, at1 := indexAt(b, at+1)
	name, at2 := indexAt(b, at1)
	resource, at3 := indexAt(b, at2)
	_, at4 := intAt(b, at3)
	id, at5 := intAt(b, at4)
	parent, at6 := intAt(b, at5)
	start, at7 := intAt(b, at6)
	duration, at8 := intAt(b, at7)
	failed, at9 := intAt(b, at8)
	if at1 == 0 || at2 == 0 || at3 == 0 || at4 == 0 || at5 == 0 || at6 == 0 || at7 == 0 || at8 == 0 || at9 == 0 {
		return false
	}
	known := uint64(len(p.strings))
	if service >= known || name >= known || resource >= known || int64(start|duration) < 0 || failed > math.MaxInt32 {
		return false
	}
	rec.service, rec.name, rec.resource = p.strings[service], p.strings[name], p.strings[resource]
	rec.id, rec.parent, rec.start, rec.duration, rec.failed = id, parent, start, duration, failed != 0
	p.at = at9
	return true
}

// metaV05 reads the tags that are text as metaV04 does.
func (p *payload) metaV05(rec *record, o *promoted) {
	n := p.mapping()
	b, at, limit := startOf(p.b), p.at, len(p.b)-ahead
	strings, labels := p.strings, p.numbers
	tags, kept := p.tags[:cap(p.tags)], len(p.tags)
	set := uint64(0) // the fixed labels among them
	for ; n > 0; n-- {
		if kept >= len(tags) {
			tags = p.moreTags(tags)
		}
		var name, value uint64
		next := 0
		if at <= limit {
			if name, next = indexAt(b, at); next != 0 {
				value, next = indexAt(b, next)
			}
		}
		if next == 0 {
			p.at = at
			name, value = uint64(p.numbered()), uint64(p.numbered())
			next = p.at
		}
		if p.bad || name >= uint64(len(labels)) || value >= uint64(len(strings)) {
			p.fail()
			return
		}
		at = next
		l, said := labels[name], strings[value]
		if said.n > maxTagText && l != labelOther {
			p.fail()
			return
		}
		tags[kept] = tag{label: l, bits: said.bits()}
		p.said[l] = said.bits()
		set |= 1 << (l & 63) & fixed[l>>6&3]
		kept += wanted(l)
		p.read += int(said.n) & -wanted(l)
	}
	p.at, p.tags = at, tags[:kept]
	p.charge(text{}) // all of them
	p.promote(o, rec, set)
}

// metricsV05 reads the tags that are numbers.
func (p *payload) metricsV05(o *promoted) {
	n := p.mapping()
	b, at, limit := startOf(p.b), p.at, len(p.b)-ahead
	labels := p.numbers
	tags, kept := p.tags[:cap(p.tags)], len(p.tags)
	for ; n > 0; n-- {
		if kept >= len(tags) {
			tags = p.moreTags(tags)
		}
		var name, value uint64
		next := 0
		if at <= limit {
			if name, next = indexAt(b, at); next != 0 {
				value, next = floatAt(b, next)
			}
		}
		if next == 0 {
			p.at = at
			name, value = uint64(p.numbered()), math.Float64bits(p.number())
			next = p.at
		}
		if p.bad || name >= uint64(len(labels)) {
			p.fail()
			return
		}
		at = next
		l := labels[name]
		tags[kept] = tag{label: l, kind: isNumber, bits: value}
		kept += wanted(l)
		if l == labelPriority {
			o.priority, o.hasPriority = int32(math.Float64frombits(value)), true
		}
	}
	p.at, p.tags = at, tags[:kept]
}
