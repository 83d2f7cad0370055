package apm

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
// asks for: once, and not for each span. Names that stand there twice, and an
// empty string that is not the first, only the agent can judge: it finds a
// string by its place.
func (p *payload) dictionary() {
	var seen [maxLabels]bool
	for n := p.array(); n > 0 && !p.bad; n-- {
		s := p.chars()
		l := p.labels.find(s.of(p.b))
		if l != labelOther && seen[l] || s.n == 0 && len(p.strings) > 0 {
			p.fail()
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
	if p.array() != 12 {
		p.fail()
		return
	}
	rec.service, rec.name, rec.resource = p.stringV05(), p.stringV05(), p.stringV05()
	p.id()
	rec.id, rec.parent = p.id(), p.id()
	rec.start, rec.duration = uint64(p.signed()), uint64(p.signed())
	rec.failed = p.status() != 0
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		key := p.numbered()
		value := p.stringV05()
		if !p.bad && p.numbers[key] != labelOther {
			o.promote(p.numbers[key], value, rec, p.b)
			p.tag(tag{label: p.numbers[key], text: value})
		}
	}
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		key := p.numbered()
		value := p.number()
		if p.bad || p.numbers[key] == labelOther {
			continue
		}
		if p.numbers[key] == labelPriority {
			o.priority, o.hasPriority = int32(value), true
		}
		p.tag(tag{label: p.numbers[key], kind: isNumber, bits: math.Float64bits(value)})
	}
	rec.kindOfWork = p.stringV05()
	rec.last = uint32(len(p.tags))
}
