package oteltraces

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// agentTags are the tags of the span that is being written, by their numbers: texts, and
// numbers. One name may have both.
type agentTags struct {
	texts   []string
	isSaid  []bool // of texts: there is one, though it may be empty
	numbers []float64
	isThere []bool // of numbers
	used    []uint8
	isUsed  []bool
}

func (a *agentTags) room(n int) {
	a.texts, a.isSaid = make([]string, n), make([]bool, n)
	a.numbers, a.isThere = make([]float64, n), make([]bool, n)
	a.isUsed = make([]bool, n)
}

func (a *agentTags) reset() {
	for _, number := range a.used {
		a.texts[number], a.isSaid[number], a.isThere[number], a.isUsed[number] = "", false, false, false
	}
	a.used = a.used[:0]
}

// use notes a tag that is about to be set. Number 0, which nobody asks for, is noted as well,
// and written as little as any without a value.
func (a *agentTags) use(number uint8) {
	if !a.isUsed[number] {
		a.isUsed[number] = true
		a.used = append(a.used, number)
	}
}

// setText sets a text where there is none yet, or an empty one.
func (a *agentTags) setText(number uint8, text string) {
	a.use(number)
	if a.isSaid[number] = true; a.texts[number] == "" {
		a.texts[number] = text
	}
}

// makeText sets a text that the ingest makes itself, unless there is one.
func (a *agentTags) makeText(number uint8, text string) {
	if !a.isSaid[number] && text != "" {
		a.setText(number, text)
	}
}

// setNumber sets a number where there is none yet.
func (a *agentTags) setNumber(number uint8, n float64) {
	a.use(number)
	if !a.isThere[number] {
		a.numbers[number], a.isThere[number] = n, true
	}
}

// madeTags are the numbers of the tags that the ingest makes itself.
type madeTags struct {
	kind, httpStatus, grpcStatus, measured, rate, version, env, dbName uint8
}

func (c *Translator) numberMade() madeTags {
	return madeTags{
		c.number("span.kind"), c.number("http.status_code"), c.number("rpc.grpc.status_code"), c.number("_dd.measured"),
		c.number("_sample_rate"), c.number("version"), c.number("env"), c.number("db.name"),
	}
}

// choose leaves of each tag the value that counts.
func (c *Translator) choose() {
	c.tags.texts[0], c.tags.isThere[0] = "", false
	for _, number := range c.tags.used {
		switch rule := c.rules[number]; {
		case rule == numberAlone:
			c.tags.texts[number] = ""
		case rule == textFirst && c.tags.texts[number] != "":
			c.tags.isThere[number] = false
		}
	}
}

// own begins a span with what no other has.
func (c *Translator) own(dst []byte, rec *record) []byte {
	p := &c.payload
	_, trace := p.idOf(rec)
	failed := int64(0)
	if rec.code == codeError {
		failed = 1
	}
	dst = append(dst, msgpack.FixMap|12)
	dst = appendUnsigned(appendText(dst, "trace_id"), trace)
	dst = appendUnsigned(appendText(dst, "span_id"), p.shortID(rec.id))
	dst = appendUnsigned(appendText(dst, "parent_id"), p.shortID(rec.parent))
	dst = appendInteger(appendText(dst, "start"), int64(rec.start))
	dst = appendInteger(appendText(dst, "duration"), max(0, int64(rec.end)-int64(rec.start)))
	return appendInteger(appendText(dst, "error"), failed)
}

// rest ends a span with its names and its tags.
func (c *Translator) rest(dst []byte, rec *record, scope scopeTags) []byte {
	p := &c.payload
	c.scratch = c.scratch[:0]
	c.span.set = labelSet{}
	c.span.add(p.tags, int(rec.first), int(rec.last))
	for i := range c.either {
		c.either[i] = c.span.set[i] | c.process.set[i]
	}
	dst = appendText(appendText(dst, "service"), c.service())
	dst = appendText(appendText(dst, "name"), c.operation(rec.kind))
	dst = appendText(appendText(dst, "resource"), c.resourceName(rec))
	dst = appendText(appendText(dst, "type"), c.workType(rec.kind))
	c.collect(rec)
	c.collectScope(scope)
	c.tags.makeText(c.made.dbName, c.text(agentNamespace))
	c.choose()
	return c.appendTags(dst)
}

// shortID is the id of a span.
func (p *payload) shortID(at uint32) uint64 {
	if at == 0 {
		return 0
	}
	return binary.BigEndian.Uint64(p.body[at:])
}

// appendTags writes what was collected.
func (c *Translator) appendTags(dst []byte) []byte {
	texts, numbers := 0, 0
	for _, number := range c.tags.used {
		if c.tags.texts[number] != "" {
			texts++
		}
		if c.tags.isThere[number] {
			numbers++
		}
	}
	dst = appendMapHeader(appendText(dst, "meta"), texts)
	for _, number := range c.tags.used {
		if text := c.tags.texts[number]; text != "" {
			dst = appendText(appendText(dst, c.wanted[number]), text)
		}
	}
	dst = appendMapHeader(appendText(dst, "metrics"), numbers)
	for _, number := range c.tags.used {
		if c.tags.isThere[number] {
			dst = appendFloat(appendText(dst, c.wanted[number]), c.tags.numbers[number])
		}
	}
	return dst
}

// collect collects a span's tags, each from the first that says something: what the ingest
// makes of several attributes, the span's own, and those of its resource.
func (c *Translator) collect(rec *record) {
	p := &c.payload
	c.tags.reset()
	c.derive(rec)
	for i := rec.first; i < rec.last; i++ {
		t := &p.tags[i]
		switch number := c.targets[t.label]; {
		case number == 0:
		case t.kind == isOther:
			p.fail(ErrUnread) // only the agent can say how that reads
		default:
			if n, is := t.number(); !is {
				c.tags.setText(number, c.value(t))
			} else if c.rules[number] != textAlone {
				c.tags.setNumber(number, n)
			}
		}
	}
	c.tags.makeText(c.made.version, c.normal(c.text(agentVersion)))
	c.tags.makeText(c.made.env, c.normal(c.text(agentEnvironment, agentOldEnvironment)))
	r := &p.resources[rec.resource]
	for i := r.firstTag; i < r.lastTag; i++ {
		t := &p.tags[i]
		switch number := c.targets[t.label]; {
		case number == 0:
		case t.kind == isOther:
			p.fail(ErrUnread)
		default:
			c.tags.setText(number, c.value(t))
		}
	}
}

// derive collects what the ingest makes of several attributes.
func (c *Translator) derive(rec *record) {
	c.tags.makeText(c.made.kind, kindNames[rec.kind])
	if code, ok := c.httpStatus(); ok && code >= 0 {
		c.tags.setNumber(c.made.httpStatus, float64(code))
	}
	c.tags.makeText(c.made.grpcStatus, c.grpcStatus())
	if n, ok := c.integer(agentMeasured); ok && n == 1 {
		c.tags.setNumber(c.made.measured, 1)
	}
	if t := c.tag(&c.span, agentSampleRate); t != nil {
		if n, is := t.number(); is {
			c.tags.setNumber(c.made.rate, n)
		}
	}
	if rec.state.len > 0 {
		if rate, ok := rateOf(rec.state.of(c.payload.body)); ok {
			c.tags.setNumber(c.made.rate, rate)
		}
	}
}

// value is an attribute as text.
func (c *Translator) value(t *tag) string {
	if t.kind == isText {
		return view(t.text().of(c.payload.body))
	}
	start := len(c.scratch)
	c.scratch = t.append(c.scratch, c.payload.body)
	return view(c.scratch[start:])
}

// httpStatus is the status of a response over HTTP.
func (c *Translator) httpStatus() (code int64, ok bool) {
	for _, l := range [...]label{agentHTTPStatus, agentNewHTTPStatus} {
		if code, ok = c.integer(l); ok {
			return code, true
		}
		if code, ok = rules.ParseStatus(c.text(l)); ok {
			return code, true
		}
	}
	return 0, false
}

// grpcStatus is the status of a call by gRPC, as it was written.
func (c *Translator) grpcStatus() string {
	for l := label(agentGRPCStatus); l <= agentRPCStatus; l++ {
		if l == agentRPCStatus && !rules.CallsGRPC(c.text(agentRPCSystemName), c.text(agentRPCSystem)) {
			break
		}
		if text := c.text(l); text != "" {
			return text
		}
		if n, ok := c.integer(l); ok {
			return strconv.FormatInt(n, 10)
		}
	}
	return ""
}

// rateOf is the share of spans that were kept, as a tracestate says it: by its threshold, or
// as samplers said it before there were any, as a power of two.
func rateOf(text []byte) (rate float64, ok bool) {
	s := readTracestate(text)
	if s.isMalformed {
		return 0, false
	}
	if s.hasThreshold {
		return 1 / s.weight(), true
	}
	p, ok := s.power()
	return math.Ldexp(1, -p), ok
}
