package traces

import "math"

// The format of /v1.0/traces: maps by numbers, with strings that are written
// where they are first used and numbered from then on.

func (p *payload) walkV1() {
	p.table.reset()
	p.numberOf(text{}) // the empty string is number 0
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		switch p.field() {
		case 1:
			p.stringsV1()
		case 2:
			p.facts.container = p.streamedText()
		case 3:
			p.facts.lang = p.streamedText()
		case 4:
			p.facts.langVersion = p.streamedText()
		case 5:
			p.facts.tracerVersion = p.streamedText()
		case 6:
			p.streamed() // the runtime id
		case 7:
			p.facts.env = p.streamedText()
		case 8:
			p.facts.host = p.streamedText()
		case 9:
			p.facts.version = p.streamedText()
		case 10:
			p.factsV1()
		case 11:
			for n := p.array(); n > 0 && !p.bad; n-- {
				p.chunkV1()
			}
		default:
			p.harvest(0)
		}
	}
}

// field reads the number of a field.
func (p *payload) field() uint64 {
	v := p.unsigned()
	if v > math.MaxUint32 {
		p.fail()
	}
	return v
}

// stringsV1 reads strings that were sent ahead. They have to be the first.
func (p *payload) stringsV1() {
	if len(p.strings) > 1 {
		p.fail()
	}
	for n := p.array(); n > 0 && !p.bad; n-- {
		if s := p.str(); s.n > 0 && !p.bad {
			if _, isNew := p.numberOf(s); !isNew {
				p.fail()
			}
		}
	}
}

// factsV1 reads the attributes of the payload.
func (p *payload) factsV1() {
	first := len(p.tags)
	p.attributes()
	for _, t := range p.tags[first:] {
		switch {
		case t.kind != isText && (t.label == labelCommit || t.label == labelProcessTags):
			p.fail()
		case t.label == labelCommit:
			p.facts.commit = t.text()
		case t.label == labelProcessTags:
			p.facts.processTags, p.facts.hasProcessTags = t.text(), true
		}
	}
	p.tags = p.tags[:first]
}

func (p *payload) chunkV1() {
	c := chunk{first: len(p.records), hasPriority: true}
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		switch p.field() {
		case 1:
			c.priority = p.priority()
		case 2:
			c.origin = p.streamedText()
		case 3:
			p.unwanted()
		case 4:
			for n := p.array(); n > 0 && !p.bad; n-- {
				p.spanV1()
			}
		case 5:
			p.boolean()
		case 6:
			p.bin()
		case 7:
			p.field() // the sampling mechanism
		default:
			p.harvest(0)
		}
	}
	c.last = len(p.records)
	p.addChunk(c)
}

func (p *payload) spanV1() {
	rec := p.add(kindUnknown)
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		if p.quickV1(rec) {
			continue
		}
		switch p.field() {
		case 1:
			rec.service = p.streamedText()
		case 2:
			rec.name = p.streamedText()
		case 3:
			rec.resource = p.streamedText()
		case 4:
			rec.id = p.unsigned()
		case 5:
			rec.parent = p.unsigned()
		case 6:
			rec.start = p.unsigned()
		case 7:
			rec.duration = p.unsigned()
		case 8:
			rec.failed = p.boolean()
		case 9:
			p.tags = p.tags[:rec.first] // a second list replaces the first
			p.attributes()
		case 10:
			rec.kindOfWork = p.streamedText()
		case 13, 14, 15:
			p.streamed() // env, version and component of the span alone
		case 11:
			for n := p.array(); n > 0 && !p.bad; n-- {
				p.linkV1()
			}
		case 12:
			for n := p.array(); n > 0 && !p.bad; n-- {
				p.eventV1()
			}
		case 16:
			rec.kind = kindOfV1(p.field())
		default:
			p.harvest(0)
		}
	}
	rec.last = uint32(len(p.tags))
}

// quickV1 reads a field of a span, if it is one of those that all spans have, and its
// string was met before.
func (p *payload) quickV1(rec *record) bool {
	if len(p.b)-p.at < ahead {
		return false
	}
	switch byteAt(startOf(p.b), p.at) {
	case 1:
		return p.quickText(&rec.service)
	case 2:
		return p.quickText(&rec.name)
	case 3:
		return p.quickText(&rec.resource)
	case 4:
		return p.quickInt(&rec.id)
	case 5:
		return p.quickInt(&rec.parent)
	case 6:
		return p.quickInt(&rec.start)
	case 7:
		return p.quickInt(&rec.duration)
	case 10:
		return p.quickText(&rec.kindOfWork)
	}
	return false
}

func (p *payload) quickText(to *text) bool {
	v, next := indexAt(startOf(p.b), p.at+1)
	if next == 0 || v >= uint64(len(p.strings)) {
		return false
	}
	*to, p.at = p.strings[v], next
	return true
}

func (p *payload) quickInt(to *uint64) bool {
	v, next := intAt(startOf(p.b), p.at+1)
	if next == 0 {
		return false
	}
	*to, p.at = v, next
	return true
}

// linkV1 and eventV1 read what is of no interest but for its strings.
func (p *payload) linkV1() {
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		switch p.field() {
		case 1:
			p.bin()
		case 2:
			p.unsigned()
		case 3:
			p.unwanted()
		case 4:
			p.streamed()
		case 5:
			p.field()
		default:
			p.harvest(0)
		}
	}
}

func (p *payload) eventV1() {
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		switch p.field() {
		case 1:
			p.unsigned()
		case 2:
			p.streamed()
		case 3:
			p.unwanted()
		default:
			p.harvest(0)
		}
	}
}

// unwanted reads attributes of something else than a span.
func (p *payload) unwanted() {
	first := len(p.tags)
	p.attributes()
	p.tags = p.tags[:first]
}

// kindOfV1 is the kind of a number, which are those of OpenTelemetry.
func kindOfV1(n uint64) kind {
	switch n {
	case 1:
		return kindInternal
	case 2:
		return kindServer
	case 3:
		return kindClient
	case 4:
		return kindProducer
	case 5:
		return kindConsumer
	}
	return kindUnknown
}

// attributes reads triples of a name, a type and a value.
func (p *payload) attributes() {
	n := p.array()
	if n%3 != 0 {
		p.fail()
	}
	b, limit := startOf(p.b), len(p.b)-ahead
	for ; n > 0 && !p.bad; n -= 3 {
		if p.at <= limit && p.quickAttribute(b) {
			continue
		}
		key := p.streamed()
		t := p.anyValue(0)
		if !p.bad && p.numbers[key] != labelOther {
			t.label = p.numbers[key]
			p.tag(t)
		}
	}
	p.charge(text{}) // what the quick way has read
}

// quickAttribute reads one whose name was met before, and whose value was so too, or is
// a float64.
func (p *payload) quickAttribute(b start) bool {
	name, at := indexAt(b, p.at)
	if at == 0 || name >= uint64(len(p.numbers)) || len(p.tags) == cap(p.tags) {
		return false
	}
	t := tag{label: p.numbers[name]}
	switch byteAt(b, at) {
	case 1:
		v, next := indexAt(b, at+1)
		if next == 0 || v >= uint64(len(p.strings)) || p.strings[v].n > maxTagText {
			return false
		}
		t.bits, at = p.strings[v].bits(), next
		p.read += int(p.strings[v].n) & -wanted(t.label)
	case 3:
		v, next := floatAt(b, at+1)
		if next != at+10 {
			return false
		}
		t.kind, t.bits, at = isNumber, v, next
	default:
		return false
	}
	p.at = at
	kept := len(p.tags)
	p.tags = p.tags[:kept+1]
	p.tags[kept] = t
	p.tags = p.tags[:kept+wanted(t.label)]
	return true
}

// anyValue reads a type and a value of it.
func (p *payload) anyValue(depth int) (t tag) {
	if depth > maxDepth {
		p.fail()
		return t
	}
	switch p.field() {
	case 1:
		t.kind, t.bits = isText, p.streamedText().bits()
	case 2:
		t.kind = isBool
		if p.boolean() {
			t.bits = 1
		}
	case 3:
		t.kind, t.bits = isNumber, math.Float64bits(p.float())
	case 4:
		v, negative := p.integer()
		if !negative && v > math.MaxInt64 {
			p.fail()
		}
		t.kind, t.bits = isInteger, v
	case 5:
		t.kind, t.bits = isBytes, p.bin().bits()
	case 6:
		t.kind = isNested
		n := p.array()
		if n%2 != 0 {
			p.fail()
		}
		for ; n > 0 && !p.bad; n -= 2 {
			p.anyValue(depth + 1)
		}
	case 7:
		t.kind = isNested
		n := p.array()
		if n%3 != 0 {
			p.fail()
		}
		for ; n > 0 && !p.bad; n -= 3 {
			p.streamed()
			p.anyValue(depth + 2)
		}
	default:
		p.fail()
	}
	return t
}

// harvest steps over what we have no name for, but numbers the strings in it, as
// whoever wrote it did.
func (p *payload) harvest(depth int) {
	lead := p.lead()
	switch {
	case depth > maxDepth:
		p.fail()
	case lead&0xe0 == 0xa0 || lead >= 0xd9 && lead <= 0xdb:
		p.streamed()
	case lead&0xf0 == 0x90 || lead == 0xdc || lead == 0xdd:
		for n := p.array(); n > 0 && !p.bad; n-- {
			p.harvest(depth + 1)
		}
	case lead&0xf0 == 0x80 || lead == 0xde || lead == 0xdf:
		for n := 2 * p.mapping(); n > 0 && !p.bad; n-- {
			p.harvest(depth + 1)
		}
	default:
		p.skip()
	}
}
