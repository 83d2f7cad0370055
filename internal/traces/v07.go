package traces

// The format of /v0.7/traces: a map by names with the tracer's facts and a list
// of chunks, each a map with a list of spans as in v0.4.

func (p *payload) walkV07() {
	var own, said facts
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		name := p.name()
		switch string(name.of(p.b)) {
		case "container_id":
			own.container = p.str()
		case "language_name":
			own.lang = p.str()
		case "language_version":
			own.langVersion = p.str()
		case "tracer_version":
			own.tracerVersion = p.str()
		case "runtime_id":
			p.str()
		case "env":
			own.env = p.str()
		case "hostname":
			own.host = p.str()
		case "app_version":
			own.version = p.str()
		case "tags":
			p.tagsV07(&own)
		case "chunks":
			if p.traces.end != 0 {
				p.fail() // a second list
			}
			for n := p.begin(); n > 0 && !p.bad; n-- {
				if !p.absent() {
					p.chunkV07(&said)
				}
			}
			p.traces.end = p.at
		default:
			p.skip()
		}
	}
	p.facts = own
	// What the payload says itself goes before what its spans say, but for the commit.
	if own.env.n == 0 {
		p.facts.env = said.env
	}
	if own.version.n == 0 {
		p.facts.version = said.version
	}
	if own.host.n == 0 {
		p.facts.host = said.host
	}
	if said.commit.n != 0 {
		p.facts.commit = said.commit
	}
}

// tagsV07 reads the tags of the payload, or of a chunk, where they mean nothing
// to us.
func (p *payload) tagsV07(own *facts) {
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		key, value := p.str(), p.str()
		if own == nil || p.bad {
			continue
		}
		switch p.labels.find(key.of(p.b)) {
		case labelCommit:
			own.commit = value
		case labelProcessTags:
			own.processTags, own.hasProcessTags = value, true
		}
	}
}

func (p *payload) chunkV07(said *facts) {
	c := chunk{first: len(p.records), at: p.at}
	var o promoted
	for n := p.mapping(); n > 0 && !p.bad; n-- {
		name := p.name()
		switch string(name.of(p.b)) {
		case "priority":
			c.priority, c.hasPriority = p.priority(), true
		case "origin":
			c.origin = p.str()
		case "tags":
			p.tagsV07(nil)
		case "dropped_trace":
			p.boolean()
		case "spans":
			for n := p.array(); n > 0 && !p.bad; n-- {
				if !p.absent() {
					p.spanV07(&o)
				}
			}
		default:
			p.skip()
		}
	}
	o.hand(said)
	if o.origin.n != 0 {
		c.origin = o.origin
	}
	if o.hasPriority {
		c.priority, c.hasPriority = o.priority, true
	}
	c.end = p.at
	if c.last = len(p.records); c.last > c.first {
		p.addChunk(c)
	}
}

// spanV07 reads a span of the v0.4 form, whose facts count where they are the
// first of their chunk and not, as there, the last.
func (p *payload) spanV07(o *promoted) {
	rec := p.add(kindInternal)
	var own promoted
	own.priority, own.hasPriority = o.priority, o.hasPriority
	own.rootPriority, own.seenRoot = o.rootPriority, o.seenRoot
	p.spanV04(rec, &own)
	own.reconcile(rec.parent)
	for _, said := range [...]struct {
		to   *text
		from text
	}{{&o.env, own.env}, {&o.version, own.version}, {&o.host, own.host}, {&o.commit, own.commit}, {&o.origin, own.origin}} {
		if said.to.n == 0 {
			*said.to = said.from
		}
	}
	o.priority, o.hasPriority = own.priority, own.hasPriority
	o.rootPriority, o.seenRoot = own.rootPriority, own.seenRoot
}
