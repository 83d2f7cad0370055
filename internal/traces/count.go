package traces

import (
	"encoding/binary"
	"math"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Policy are what the agent wants counted, and what it would leave out.
type Policy struct {
	labels *labels
	kinds  [len(kindNames)]bool // counted for their kind alone
	ignore []*regexp.Regexp     // of a root's resource: its trace is not counted
}

// NewPolicy reads an agent's features. It reports false where the agent asks for
// what only it can do: its traces are then left to it.
func NewPolicy(peerTags, spanKinds, ignoreResources []string) (*Policy, bool) {
	l, ok := newLabels(peerTags)
	w := &Policy{labels: l}
	for k, name := range kindNames {
		w.kinds[k] = slices.Contains(spanKinds, name)
	}
	for _, text := range ignoreResources {
		r, err := regexp.Compile(text)
		if err != nil {
			return nil, false
		}
		w.ignore = append(w.ignore, r)
	}
	return w, ok
}

// batch is the snapshots of one body that have one origin: those of traces whose
// roots name the same base service.
type batch struct {
	baseService string
	message     []byte // a spans message
	count       int
}

// Counter turns bodies into batches of snapshots. One goroutine at a time uses
// it; its memory is used again for every body.
type Counter struct {
	payload payload
	names   names
	links   []rules.Link
	spans   rules.Spans
	set     labelSet          // those that the selected span has
	at      [maxLabels]uint32 // by label of those, the index of its tag
	key     span.Key
	memo    memo
	scratch []byte // of labels that are not in the body as they must be
	encoded []byte
	batches []batch
	Now     func() time.Time

	policy    *Policy
	tracer    bool // the tracer marked top-level spans itself
	weight    float64
	current   *batch
	made      int // bytes of messages
	synthetic bool
}

// NewCounter makes a counter.
func NewCounter() *Counter { return &Counter{Now: time.Now} }

// keptTags is how many tags the memory of a counter may have room for between two
// bodies: 1 MB of them, which is what some thousand spans need.
const keptTags = 1 << 16

// keptText is the same for the bytes of what it makes of them.
const keptText = 4 << 20

// MaxBatches bounds the base services of one body. Each takes a publisher.
const MaxBatches = 32

// kept is the counter for the next body, without what only a very large one needed.
func (c *Counter) Next() *Counter {
	if cap(c.payload.tags) > keptTags || cap(c.payload.strings) > keptTags || cap(c.scratch)+c.room() > keptText {
		return NewCounter()
	}
	return c
}

// room is what the batches of this body and of earlier ones take.
func (c *Counter) room() (bytes int) {
	for _, b := range c.batches[:cap(c.batches)] {
		bytes += cap(b.message)
	}
	return bytes + cap(c.encoded)
}

// Count walks a body and makes batches of what the agent would count of it. lang
// is the language that the request's header names; topLevel says that the tracer
// marked top-level spans itself. With an error the body is left to the agent.
func (c *Counter) Count(format Format, body []byte, lang string, topLevel bool, policy *Policy) error {
	c.policy, c.tracer = policy, topLevel
	c.names.reset(lang)
	c.batches = c.batches[:0]
	c.scratch, c.made = c.scratch[:0], 0
	c.memo.reset(policy)
	p := &c.payload
	if err := p.walk(format, body, policy.labels); err != nil {
		return err
	}
	for i := range p.chunks {
		if c.trace(&p.chunks[i]); p.bad {
			return ErrUnread
		}
	}
	for i := range c.batches {
		b := &c.batches[i]
		wire.EndSpans(b.message, 0, b.count)
	}
	return nil
}

// trace counts the spans of one trace, as one that the agent would take whole or
// not at all.
func (c *Counter) trace(t *chunk) {
	records := c.payload.records[t.first:t.last]
	if len(records) == 0 || !c.normalize(records) {
		return
	}
	if !c.tracer {
		c.link(records)
	}
	root := c.root(records)
	if c.ignored(root) {
		return
	}
	c.open(root, t)
	for i := range records {
		if c.payload.bad {
			return // it is left to the agent, however much there is left of it
		}
		rec := &records[i]
		c.choose(rec)
		if top := c.isTopLevel(i); c.eligible(rec, top) {
			c.snapshot(rec, top)
		}
	}
}

// year2000 is the earliest start of a span that the agent believes.
const year2000 = 946684800e9

// normalize mends what the agent mends, before anything is asked of the spans. A
// span without an id costs its trace, as there.
func (c *Counter) normalize(records []record) bool {
	for i := range records {
		rec := &records[i]
		if rec.id == 0 {
			return false
		}
		if rec.parent == rec.id {
			rec.parent = 0
		}
		if rec.start > math.MaxInt64 {
			c.payload.fail() // before 1970: no tracer writes that
			return false
		}
		if rec.duration > math.MaxInt64-rec.start {
			rec.duration = 0
		}
		if rec.start < year2000 {
			rec.start = uint64(c.Now().UnixNano())
			if rec.duration <= rec.start {
				rec.start -= rec.duration
			}
		}
	}
	return true
}

// link relates the spans of a trace to each other, where that has to be known.
func (c *Counter) link(records []record) {
	c.links = c.links[:0]
	for i := range records {
		rec := &records[i]
		link := rules.Link{Span: rec.id, Parent: rec.parent}
		if !c.tracer && !c.payload.bad {
			link.Service = c.names.service(c.text(rec.service))
		}
		c.links = append(c.links, link)
	}
	c.spans.Reset(c.links)
}

// root is the span that speaks for the trace: as nearly always, the last one without
// a parent, which is found without relating them.
func (c *Counter) root(records []record) *record {
	for i := len(records) - 1; i >= 0; i-- {
		if records[i].parent == 0 {
			return &records[i]
		}
	}
	if c.tracer {
		c.link(records)
	}
	return &records[c.spans.Root()]
}

func (c *Counter) isTopLevel(i int) bool {
	return !c.tracer && c.spans.IsTopLevel(i) || c.isOne(labelTopLevel) || c.isOne(labelTracerTopLevel)
}

// eligible says what rules.Eligible says, for tags as the agent's receiver reads
// them.
func (c *Counter) eligible(rec *record, top bool) bool {
	if !top && !c.policy.kinds[rec.kind] && !c.isOne(labelMeasured) {
		return false
	}
	partial, ok := c.number(labelPartialVersion)
	return !ok || partial < 0
}

// ignored says whether the agent would leave the trace out for its root's resource.
func (c *Counter) ignored(root *record) bool {
	if len(c.policy.ignore) == 0 {
		return false
	}
	resource := c.text(root.resource)
	if len(resource) == 0 {
		k := span.Key{Operation: string(c.text(root.name))}
		k.Normalize("")
		resource = []byte(k.Resource)
	}
	for _, r := range c.policy.ignore {
		if r.Match(resource) {
			return true
		}
	}
	return false
}

// open reads what a trace's root says for all of its spans.
func (c *Counter) open(root *record, t *chunk) {
	c.choose(root)
	c.weight = rules.WeightOf(c.number(labelSampleRate))
	if !wire.ValidWeight(c.weight) {
		c.payload.fail()
		c.weight = 1
	}
	c.current = c.batch(c.baseService())
	c.synthetic = rules.Synthetics(view(t.origin.of(c.payload.b)))
}

// batch is the batch of a base service, begun if there is none.
func (c *Counter) batch(baseService string) *batch {
	for i := range c.batches {
		if c.batches[i].baseService == baseService {
			return &c.batches[i]
		}
	}
	if len(c.batches) == MaxBatches {
		c.payload.fail()
		return &c.batches[0]
	}
	if len(c.batches) < cap(c.batches) {
		c.batches = c.batches[:len(c.batches)+1] // with the memory of an earlier body's
	} else {
		c.batches = append(c.batches, batch{})
	}
	b := &c.batches[len(c.batches)-1]
	b.baseService, b.count = baseService, 0
	b.message = wire.BeginSpans(b.message[:0])
	return b
}

// snapshot appends one span to its batch.
func (c *Counter) snapshot(rec *record, top bool) {
	if rec.misplaced {
		c.payload.fail()
		return
	}
	c.scratch = c.scratch[:0]
	var flags span.Flags
	if rec.failed {
		flags |= span.Error
	}
	if top {
		flags |= span.TopLevel
	}
	key := c.encode(rec)
	c.current.message = wire.AppendWhole(c.current.message, key, rec.duration, int64(rec.start+rec.duration), flags, c.weight)
	c.current.count++
	if c.made += len(key); c.made > c.payload.most.made {
		c.payload.fail()
	}
}

// choose makes a span's tags be found by their labels: of two the later one.
func (c *Counter) choose(rec *record) {
	c.set = labelSet{}
	for i := rec.first; i < rec.last; i++ {
		l := c.payload.tags[i].label
		c.at[l] = i
		c.set.add(l)
	}
}

// tag is the selected span's, nil where it has none.
func (c *Counter) tag(l label) *tag {
	if c.set.has(l) {
		return &c.payload.tags[c.at[l]]
	}
	return nil
}

func (c *Counter) number(l label) (float64, bool) {
	if t := c.tag(l); t != nil {
		return t.number(c.payload.b)
	}
	return 0, false
}

func (c *Counter) isOne(l label) bool {
	t := c.tag(l)
	return t != nil && t.isOne(c.payload.b)
}

// plain is a tag's text, where it was written as text.
func (c *Counter) plain(l label) string {
	if t := c.tag(l); t != nil && t.kind == isText {
		return view(c.text(t.text()))
	}
	return ""
}

// text is a string of the body as valid UTF-8, repaired as the agent does it.
func (c *Counter) text(t text) []byte {
	raw := t.of(c.payload.b)
	c.payload.charge(t)
	if isASCII(raw) || utf8.Valid(raw) {
		return raw
	}
	start := len(c.scratch)
	for _, r := range view(raw) {
		c.scratch = utf8.AppendRune(c.scratch, r)
	}
	if len(c.scratch) > c.payload.most.made {
		c.payload.fail()
	}
	return c.scratch[start:]
}

// isASCII says whether there are only bytes below 0x80. It looks at eight of them at
// once, at the last ones twice, where utf8.Valid looks at the last ones one by one:
// labels are short, and that was a twelfth of counting.
func isASCII(b []byte) bool {
	const high = 0x8080808080808080
	if n := len(b); n >= 8 {
		seen := binary.LittleEndian.Uint64(b[n-8:])
		for ; len(b) > 8; b = b[8:] {
			seen |= binary.LittleEndian.Uint64(b)
		}
		return seen&high == 0
	}
	seen := byte(0)
	for _, c := range b {
		seen |= c
	}
	return seen < 0x80
}

// Batches are what the last body held: an origin's base service and the body of a
// spans message for each. They are good until the next Count.
func (c *Counter) Batches(yield func(baseService string, spans []byte) bool) {
	for i := range c.batches {
		b := &c.batches[i]
		_, body, err := wire.Split(b.message[wire.HeaderLen:])
		if err != nil {
			panic("BUG: a batch can't be read: " + err.Error())
		}
		if !yield(b.baseService, body) {
			return
		}
	}
}
