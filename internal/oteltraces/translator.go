package oteltraces

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// Translator turns requests into what the agent's own OTLP ingest makes of them, by the
// second version of its names: a payload of traces for each resource, in the format v0.7. Of
// each span it writes those tags that somebody asks for. Package traces then counts them by
// its FormatIngest, as the agent counts what its ingest has made. One goroutine at a time uses
// it.
type Translator struct {
	walked
	policy  Policy
	wanted  []string     // names of tags, by number; number 0 is none
	targets []uint8      // by label, the number of the tag that the attribute becomes
	plain   []uint8      // the same of a scope's attribute
	rules   []numberRule // of tags, by number
	made    madeTags
	tags    agentTags
	span    selected // attributes of the span that is being written
	process selected // of its resource
	either  labelSet // what one of both has
	scopes  []scopeTags
	groups  groups
	cache   translatedSpans
	counted int // spans that somebody has counted already
	scratch []byte
	written []byte
}

// NewTranslator makes a translator that writes those tags. It needs several names for some of
// them, and fails where they are too many. The host is said by a resource alone.
func NewTranslator(wanted []string) (*Translator, error) {
	c := &Translator{wanted: append([]string{""}, wanted...)}
	names := slices.Clone(agentNames[:])
	slices.Sort(c.wanted[1:])
	c.wanted = slices.DeleteFunc(slices.Compact(c.wanted), func(name string) bool { return name == "_dd.hostname" })
	for _, name := range c.wanted[1:] {
		for _, from := range sourcesOf(name) {
			if !slices.Contains(names, from) {
				names = append(names, from)
			}
		}
	}
	if len(names) > maxLabels {
		return nil, fmt.Errorf("translate spans for the agent: tags need %d attributes, at most %d can be read: ask for fewer tags", len(names), maxLabels)
	}
	for _, name := range c.wanted {
		c.rules = append(c.rules, numberRules[name])
	}
	c.targets, c.plain = make([]uint8, len(names)), make([]uint8, len(names))
	for at, name := range names {
		c.targets[at], c.plain[at] = c.number(agentTag(name)), c.number(name)
	}
	ofSpans := slices.Clone(names)
	for at := agentComputed; at < agentLabels; at++ {
		if c.targets[at] == 0 && c.plain[at] == 0 {
			ofSpans[at] = "" // a resource alone says it
		}
	}
	c.policy = Policy{names: newNameTable(ofSpans), resourceNames: newNameTable(names)}
	c.made = c.numberMade()
	c.tags.room(len(c.wanted))
	c.cache.Reset()
	return c, nil
}

// number is that of a tag, 0 where nobody asks for it.
func (c *Translator) number(name string) uint8 {
	if at := slices.Index(c.wanted, name); at > 0 {
		return uint8(at)
	}
	return 0
}

// errTooLong is why a body is not translated though it is read.
var errTooLong = fmt.Errorf("translate spans for the agent: it would be too long: %w", ErrTooMuch)

// Translate walks a body and writes the payloads of its resources. isCounted says that
// statistics of all of it were made before, unless a resource says otherwise. With an error
// there are none.
func (c *Translator) Translate(body []byte, isCounted bool) error {
	c.written, c.counted = c.written[:0], 0
	p := &c.payload
	if err := p.walk(body, &c.policy); err != nil {
		return err
	}
	for i := range p.resources {
		r := &p.resources[i]
		c.process.set = labelSet{}
		c.process.add(p.tags, r.firstTag, r.lastTag)
		if err := c.resource(r, isCounted); err != nil {
			c.written, p.err = c.written[:0], err
			return err
		}
	}
	return nil
}

// Written is the payloads of the last body, one behind the other. It is good until the next.
func (c *Translator) Written() []byte { return c.written }

// Release lets go of the last body and its payloads, and of memory that only a very large one
// needed.
func (c *Translator) Release() {
	c.release()
	c.written = c.written[:0]
	c.tags.reset()
	if cap(c.payload.tags) > keptTags || cap(c.written)+cap(c.scratch) > keptText {
		c.walked, c.groups, c.written, c.scratch = walked{}, groups{}, nil, nil
	}
}

// Counted is how many spans of the last body are in no payload, because statistics of them were
// made before.
func (c *Translator) Counted() int { return c.counted }

// resource writes the payload of one, unless it has no spans.
func (c *Translator) resource(r *resource, isCounted bool) error {
	p := &c.payload
	if !p.hasSpans(r) {
		return nil
	}
	if r.isCounted = c.isCounted(isCounted); r.isCounted {
		c.counted += p.scopes[r.last-1].last - p.scopes[r.first].first
		return nil
	}
	c.readScopes(r)
	c.cache.enter(r.said.of(p.body))
	c.groups.group(p, p.scopes[r.first].first, p.scopes[r.last-1].last)
	if len(c.written)+2*int(r.said.len)+factsRoom > p.limits.made {
		return errTooLong
	}
	c.written = c.facts(c.written)
	c.written = appendArrayHeader(appendText(c.written, "chunks"), len(c.groups.ends))
	begin := uint32(0)
	for _, end := range c.groups.ends {
		c.chunk(c.groups.order[begin:end])
		begin = end
	}
	if p.err != nil && !errors.Is(p.err, ErrUnread) {
		return errTooLong
	}
	return p.err
}

// isCounted says whether statistics of the selected resource's spans were made before: what it
// says itself goes before what its request says, as in the agent's receiver.
func (c *Translator) isCounted(said bool) bool {
	if !c.process.set.has(agentComputed) {
		return said
	}
	value := c.said(agentComputed)
	return value != "" && value != "false"
}

// keptByDefault is the priority of a trace of which nobody says whether it is kept.
const keptByDefault = 1

// chunk writes the spans of one trace.
func (c *Translator) chunk(spans []uint32) {
	dst := appendInteger(appendText(append(c.written, msgpack.FixMap|2), "priority"), keptByDefault)
	c.written = appendArrayHeader(appendText(dst, "spans"), len(spans))
	for _, at := range spans {
		if c.payload.err == nil {
			c.write(int(at))
		}
	}
}
