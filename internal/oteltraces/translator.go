package oteltraces

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Translator turns requests into what the agent's own OTLP ingest makes of them, by the
// second version of its names: a payload of traces for each resource, in the format v0.7. Of
// each span it writes those tags that somebody asks for. Package traces then counts them by
// its FormatIngest, as the agent counts what its ingest has made. One goroutine at a time uses
// it.
type Translator struct {
	payload payload
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
	counted int // spans that somebody has counted already
	scratch []byte
	written []byte
	ends    []int // of payloads in written
}

// NewTranslator makes a translator that writes those tags. It needs several names for some of
// them, and fails where they are too many.
func NewTranslator(wanted []string) (*Translator, error) {
	c := &Translator{wanted: append([]string{""}, wanted...)}
	names := slices.Clone(agentNames[:])
	slices.Sort(c.wanted[1:])
	c.wanted = slices.Compact(c.wanted)
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
	table := newNameTable(names)
	c.policy = Policy{names: table, resourceNames: table}
	c.made = c.numberMade()
	c.tags.room(len(c.wanted))
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

// Translate walks a body and makes the payloads of its resources. With an error there are
// none.
func (c *Translator) Translate(body []byte) error {
	c.written, c.ends, c.counted = c.written[:0], c.ends[:0], 0
	p := &c.payload
	if err := p.walk(body, &c.policy); err != nil {
		return err
	}
	for i := range p.resources {
		r := &p.resources[i]
		c.process.set = labelSet{}
		c.process.add(p.tags, r.firstTag, r.lastTag)
		if err := c.resource(uint32(i)); err != nil {
			c.ends = c.ends[:0]
			return err
		}
	}
	return nil
}

// Payloads are those of the last body. They are good until the next one.
func (c *Translator) Payloads(yield func(payload []byte) bool) {
	begin := 0
	for _, end := range c.ends {
		if !yield(c.written[begin:end:end]) {
			return
		}
		begin = end
	}
}

// Release lets go of the last body and its payloads, and of memory that only a very large one
// needed.
func (c *Translator) Release() {
	c.payload.body, c.ends = nil, c.ends[:0]
	c.tags.reset()
	if cap(c.payload.tags) > keptTags || cap(c.written)+cap(c.scratch) > keptText {
		c.payload, c.groups, c.written, c.scratch = payload{}, groups{}, nil, nil
	}
}

// Counted is how many spans of the last body are in no payload, because their resource says
// that statistics of them were made before.
func (c *Translator) Counted() int { return c.counted }

// resource writes the payload of one, unless it has no spans.
func (c *Translator) resource(place uint32) error {
	p := &c.payload
	r := &p.resources[place]
	if r.first == r.last || p.scopes[r.first].first == p.scopes[r.last-1].last {
		return nil
	}
	if said := c.said(agentComputed); said != "" && said != "false" {
		c.counted += p.scopes[r.last-1].last - p.scopes[r.first].first
		return nil
	}
	c.readScopes(r)
	c.groups.group(p, p.scopes[r.first].first, p.scopes[r.last-1].last)
	dst := c.facts(c.written)
	dst = appendArrayHeader(appendText(dst, "chunks"), len(c.groups.ends))
	begin := uint32(0)
	for _, end := range c.groups.ends {
		if dst = c.chunk(dst, c.groups.order[begin:end]); len(dst) > p.limits.made {
			return errTooLong
		}
		begin = end
	}
	if errors.Is(p.err, ErrUnread) {
		return p.err
	}
	c.written, c.ends = dst, append(c.ends, len(dst))
	return nil
}

// facts begins a payload with what its resource says of the process.
func (c *Translator) facts(dst []byte) []byte {
	c.span.set, c.either, c.scratch = labelSet{}, c.process.set, c.scratch[:0]
	dst = append(dst, msgpack.FixMap|5)
	dst = appendText(appendText(dst, "language_name"), c.said(agentLanguage))
	dst = appendText(appendText(dst, "tracer_version"), c.join(span.OTLPVersion, c.said(agentSDKVersion)))
	dst = appendText(appendText(dst, "container_id"), c.normal(c.text(agentContainer)))
	return appendText(appendText(dst, "env"), c.normal(c.text(agentEnvironment, agentOldEnvironment)))
}

// said is what the resource says, of any type, as the value of a tag.
func (c *Translator) said(l label) string {
	if !c.process.set.has(l) {
		return ""
	}
	start := len(c.scratch)
	c.scratch = c.payload.tags[c.process.at[l]].append(c.scratch, c.payload.body)
	return c.normal(view(c.scratch[start:]))
}

// normal is a text as the value of a tag.
func (c *Translator) normal(text string) string {
	start := len(c.scratch)
	c.scratch = appendTagValue(c.scratch, text)
	return view(c.scratch[start:])
}

// keptByDefault is the priority of a trace of which nobody says whether it is kept.
const keptByDefault = 1

// chunk writes the spans of one trace.
func (c *Translator) chunk(dst []byte, spans []uint32) []byte {
	dst = appendInteger(appendText(append(dst, msgpack.FixMap|2), "priority"), keptByDefault)
	dst = appendArrayHeader(appendText(dst, "spans"), len(spans))
	for _, at := range spans {
		if dst = c.write(dst, int(at)); len(dst) > c.payload.limits.made {
			break
		}
	}
	return dst
}
