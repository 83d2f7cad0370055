package main

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/proto"
)

// packer writes msgpack to memory, which can't fail.
type packer struct {
	*msgpack.Encoder
	bytes.Buffer
	numbers map[string]uint64 // string table of v1.0
}

func newPacker() *packer {
	p := &packer{numbers: map[string]uint64{"": 0}}
	p.Encoder = msgpack.NewEncoder(&p.Buffer)
	p.Encoder.UseCompactInts(true)
	return p
}

func (p *packer) list(n int) { _ = p.EncodeArrayLen(n) }
func (p *packer) dict(n int) { _ = p.EncodeMapLen(n) }

// put writes values one after another.
func (p *packer) put(values ...any) {
	for _, v := range values {
		_ = p.Encode(v)
	}
}

// traces splits the spans into traces of two.
func (s *spans) traces() (all [][]span) {
	for i := 0; i < len(s.all); i += 2 {
		all = append(all, s.all[i:min(i+2, len(s.all))])
	}
	return all
}

func (s *span) kind() string {
	if s.isRoot() {
		return "server"
	}
	return "client"
}

func (p *packer) named(service string, s *span) {
	p.dict(12)
	p.put("service", service, "name", "http.request", "resource", s.resource, "type", "web", "trace_id",
		s.trace, "span_id", s.id, "parent_id", s.root, "start", s.start, "duration", s.duration, "error",
		bit(s.failed))
	p.put("meta")
	p.dict(2)
	p.put("env", service, "span.kind", s.kind(), "metrics")
	p.dict(2)
	p.put("_sampling_priority_v1", 1.0, "_top_level", float64(bit(s.isRoot())))
}

func (s *spans) v04() []byte {
	p := newPacker()
	traces := s.traces()
	p.list(len(traces))
	for _, trace := range traces {
		p.list(len(trace))
		for i := range trace {
			p.named(s.service, &trace[i])
		}
	}
	return p.Bytes()
}

func (s *spans) v05() []byte {
	var names []string
	numbers := map[string]uint64{}
	number := func(text string) uint64 {
		n, ok := numbers[text]
		if !ok {
			n = uint64(len(names))
			numbers[text] = n
			names = append(names, text)
		}
		return n
	}
	p := newPacker()
	traces := s.traces()
	p.list(len(traces))
	for _, trace := range traces {
		p.list(len(trace))
		for _, span := range trace {
			p.list(12)
			p.put(number(s.service), number("http.request"), number(span.resource), span.trace, span.id)
			p.put(span.root, span.start, span.duration, bit(span.failed))
			p.dict(2)
			p.put(number("env"), number(s.service), number("span.kind"), number(span.kind()))
			p.dict(2)
			p.put(number("_sampling_priority_v1"), 1.0, number("_top_level"), float64(bit(span.isRoot())),
				number("web"))
		}
	}
	header := newPacker()
	header.list(2)
	header.put(names)
	return append(header.Bytes(), p.Bytes()...)
}

func (s *spans) v07() []byte {
	p := newPacker()
	p.dict(3)
	p.put("language_name", "go", "env", s.service, "chunks")
	traces := s.traces()
	p.list(len(traces))
	for _, trace := range traces {
		p.dict(2)
		p.put("priority", 1, "spans")
		p.list(len(trace))
		for i := range trace {
			p.named(s.service, &trace[i])
		}
	}
	return p.Bytes()
}

// statistics returns client-computed statistics for ten seconds.
func (s *spans) statistics() []byte {
	type group struct {
		counts
		roots    uint64
		ok, errs *ddsketch.DDSketch
	}
	groups := map[string]*group{}
	for _, span := range s.all {
		g := groups[span.resource]
		if g == nil {
			g = &group{ok: payload.NewSketch(), errs: payload.NewSketch()}
			groups[span.resource] = g
		}
		g.add(counts{1, bit(span.failed), uint64(span.duration)})
		g.roots += bit(span.isRoot())
		sketch := g.ok
		if span.failed {
			sketch = g.errs
		}
		_ = sketch.Add(float64(span.duration)) // durations are positive
	}
	p := newPacker()
	p.dict(4)
	p.put("Env", s.service, "Service", s.service, "Lang", "go", "Stats")
	p.list(1)
	p.dict(3)
	const width = 10_000_000_000
	p.put("Start", time.Now().UnixNano()/width*width, "Duration", uint64(width), "Stats")
	p.list(len(groups))
	for resource, g := range groups {
		p.dict(9)
		p.put("Service", s.service, "Name", "http.request", "Resource", resource, "Hits", g.Spans, "Errors",
			g.Errors, "TopLevelHits", g.roots, "Duration", g.Duration)
		ok, _ := proto.Marshal(g.ok.ToProto()) // valid sketches
		errs, _ := proto.Marshal(g.errs.ToProto())
		p.put("OkSummary", ok, "ErrorSummary", errs)
	}
	return p.Bytes()
}

// stringField writes a v1.0 string: in full at its first occurrence, and as a number afterwards.
func (p *packer) stringField(field int, text string) {
	p.put(field)
	p.internedString(text)
}

func (p *packer) internedString(text string) {
	n, ok := p.numbers[text]
	if !ok {
		p.numbers[text] = uint64(len(p.numbers))
		p.put(text)
		return
	}
	p.put(n)
}

func (s *spans) v10() []byte {
	p := newPacker()
	p.dict(3)
	p.stringField(3, "go")
	p.stringField(7, s.service)
	traces := s.traces()
	p.put(11)
	p.list(len(traces))
	for _, trace := range traces {
		id := binary.BigEndian.AppendUint64(make([]byte, 8), trace[0].trace)
		p.dict(3)
		p.put(1, 1, 6, id, 4)
		p.list(len(trace))
		for _, span := range trace {
			p.dict(11)
			p.stringField(1, s.service)
			p.stringField(2, "http.request")
			p.stringField(3, span.resource)
			p.put(4, span.id, 5, span.root, 6, span.start, 7, span.duration, 8, span.failed)
			p.stringField(10, "web")
			p.put(16, 3-bit(span.isRoot()), 9)
			p.list(3)
			p.internedString("_top_level")
			p.put(3, float64(bit(span.isRoot())))
		}
	}
	return p.Bytes()
}
