package traces

// The format of /v0.7/traces: a map by names with the tracer's facts and a list
// of chunks, each a map with a list of spans as in v0.4.

func (p *payload) walkV07() {
	var own, said facts
	for n := p.Map(); n > 0 && !p.Failed(); n-- {
		switch string(p.fieldName().Of(p.body)) {
		case "container_id":
			own.container = p.Str()
		case "language_name":
			own.lang = p.Str()
		case "language_version":
			own.langVersion = p.Str()
		case "tracer_version":
			own.tracerVersion = p.Str()
		case "runtime_id":
			p.Str()
		case "env":
			own.env = p.Str()
		case "hostname":
			own.host = p.Str()
		case "app_version":
			own.version = p.Str()
		case "tags":
			p.tagsV07(&own)
		case "chunks":
			if p.list.end != 0 {
				p.Fail() // a second list
			}
			for n := p.begin(); n > 0 && !p.Failed(); n-- {
				if !p.IsNil() {
					p.chunkV07(&said)
				}
			}
			p.list.end = p.At()
		default:
			p.Skip()
		}
	}
	p.facts = own
	// What the payload says itself goes before what its spans say, but for the commit.
	if own.env.Len == 0 {
		p.facts.env = said.env
	}
	if own.version.Len == 0 {
		p.facts.version = said.version
	}
	if own.host.Len == 0 {
		p.facts.host = said.host
	}
	if said.commit.Len != 0 {
		p.facts.commit = said.commit
	}
}

// tagsV07 reads the tags of the payload, or of a chunk, where they mean nothing
// to us.
func (p *payload) tagsV07(own *facts) {
	for n := p.Map(); n > 0 && !p.Failed(); n-- {
		key, value := p.Str(), p.Str()
		if own == nil || p.Failed() {
			continue
		}
		switch p.labels.find(key.Of(p.body)) {
		case labelCommit:
			own.commit = value
		case labelProcessTags:
			own.processTags, own.hasProcessTags = value, true
		}
	}
}

func (p *payload) chunkV07(said *facts) {
	c := chunk{first: len(p.records), at: p.At()}
	p.ofTrace = ofTrace{}
	for n := p.Map(); n > 0 && !p.Failed(); n-- {
		switch string(p.fieldName().Of(p.body)) {
		case "priority":
			c.priority, c.hasPriority = p.priority(), true
		case "origin":
			c.origin = p.Str()
		case "tags":
			p.tagsV07(nil)
		case "dropped_trace":
			p.Bool()
		case "spans":
			p.each((*payload).spanV07)
		default:
			p.Skip()
		}
	}
	p.ofTrace.tell(said)
	p.ofTrace.mark(&c)
	if len(p.records) > c.first {
		p.addChunk(c)
	}
}

// spanV07 reads a span of the v0.4 form. What it says of its trace counts where it is
// the first of the chunk and not, as there, the last.
func (p *payload) spanV07() {
	if p.IsNil() {
		return
	}
	earlier := p.ofTrace
	p.ofTrace.forgetTexts()
	rec := p.namedSpan()
	p.ofTrace.reconcile(rec.parent)
	p.ofTrace.addFirst(&earlier)
}
