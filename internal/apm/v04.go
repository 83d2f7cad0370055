package apm

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

func (p *payload) spanV04(rec *record, o *promoted) {
	part := 0 // of the tags, how many kinds were read
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		name := p.name()
		switch string(name.of(p.b)) {
		case "service":
			rec.service = p.chars()
		case "name":
			rec.name = p.chars()
		case "resource":
			rec.resource = p.chars()
		case "type":
			rec.kindOfWork = p.chars()
		case "trace_id":
			p.id()
		case "span_id":
			rec.id = p.id()
		case "parent_id":
			rec.parent = p.id()
		case "start":
			rec.start = uint64(p.signed())
		case "duration":
			rec.duration = uint64(p.signed())
		case "error":
			rec.failed = p.status() != 0
		case "meta":
			p.part(&part, 1)
			p.metaV04(rec, o)
		case "metrics":
			p.part(&part, 2)
			p.metricsV04(o)
		case "meta_struct":
			p.part(&part, 3)
			p.metaStruct()
		case "span_links", "span_events":
			for n := p.array(); n > 0 && !p.bad; n-- {
				if p.absent() {
					continue
				}
				for n := 2 * p.mapping(); n > 0 && !p.bad; n-- {
					p.skip()
				}
			}
		default:
			p.skip()
		}
	}
	rec.last = uint32(len(p.tags))
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

func (p *payload) metaV04(rec *record, o *promoted) {
	if p.absent() {
		return
	}
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		key, ok := p.brief()
		if !ok {
			key = p.chars()
		}
		value, ok := p.brief()
		if !ok {
			value = p.chars()
		}
		if l := p.labels.find(key.of(p.b)); l != labelOther && !p.bad {
			o.promote(l, value, rec, p.b)
			p.tag(tag{label: l, text: value})
		}
	}
}

func (p *payload) metricsV04(o *promoted) {
	if p.absent() {
		return
	}
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		key, ok := p.brief()
		if !ok {
			key = p.chars()
		}
		value := p.number()
		if l := p.labels.find(key.of(p.b)); l != labelOther && !p.bad {
			if l == labelPriority {
				o.priority, o.hasPriority = int32(value), true
			}
			p.tag(tag{label: l, kind: isNumber, bits: math.Float64bits(value)})
		}
	}
}

func (p *payload) metaStruct() {
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		key := p.chars()
		value := p.bin()
		if l := p.labels.find(key.of(p.b)); l != labelOther && !p.bad {
			p.tag(tag{label: l, kind: isBytes, text: value})
		}
	}
}
