package clientstats

import (
	"cmp"
	"errors"
	"math"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Why a body can't be merged.
var (
	ErrUnread  = errors.New("read statistics: the body is not what the endpoint takes")
	ErrUnfit   = errors.New("read statistics: they can't be added up exactly")
	ErrMapping = errors.New("read statistics: a sketch has a mapping that the agent does not know")
)

// Payload is what a tracer that computes its own statistics sends in one request.
type Payload struct {
	Groups []aggregate.Group // their labels are parts of the body
	Width  uint64            // of all buckets, in nanoseconds
	Origin span.Origin       // as long as its tracer likes, and part of the body too

	reader msgpack.Reader
	body   []byte
	limits limits
	start  uint64 // of the bucket that is being read
	tags   []string
	bins   []sketch.Bin
	// What was read can't be added up exactly, or is of a mapping that the agent does
	// not know.
	unfit, foreign bool
}

// Read reads a body. said is what the request's headers say of the origin: what the
// body says of the same comes before it.
func (p *Payload) Read(body []byte, said span.Origin) error {
	p.forget()
	p.Origin, p.reader, p.body, p.limits = said, msgpack.NewReader(body), body, limitsOf(len(body))
	p.each(p.payloadField)
	p.must(len(p.Groups) > 0) // a probe is the agent's to answer
	switch {
	case p.foreign:
		return ErrMapping
	case p.unfit:
		return ErrUnfit
	case p.reader.Failed():
		return ErrUnread
	}
	return nil
}

// forget lets go of the body and of all that was read of it.
func (p *Payload) forget() {
	clear(p.Groups)
	clear(p.tags)
	*p = Payload{Groups: p.Groups[:0], tags: p.tags[:0], bins: p.bins[:0]}
}

// must ends the reading where something is not so that holds of every payload that can
// be merged.
func (p *Payload) must(is bool) {
	if !is && !p.reader.Failed() {
		p.unfit = true
		p.reader.Fail()
	}
}

// each visits the fields of a map by name.
func (p *Payload) each(visit func(name string)) {
	for n := p.reader.Map(); n > 0 && !p.reader.Failed(); n-- {
		visit(p.text())
	}
}

// list visits the elements of an array.
func (p *Payload) list(visit func()) {
	for n := p.reader.Array(); n > 0 && !p.reader.Failed(); n-- {
		visit()
	}
}

// text reads a string as a part of the body.
func (p *Payload) text() string {
	b := p.reader.Str().Of(p.body)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// count reads a number. A larger one than most can't be added up exactly.
func (p *Payload) count(most uint64) uint64 {
	n := p.reader.Uint(math.MaxUint64)
	p.must(n <= most)
	return min(n, most)
}

// unknown is a field that we have no place for: nothing of it may be lost.
func (p *Payload) unknown() { p.must(false) }

// payloadField reads one field of a payload, by the names of the agent's type.
func (p *Payload) payloadField(name string) {
	o := &p.Origin
	switch name {
	case "Hostname":
		o.Host = p.text()
	case "Env":
		o.Env = p.text()
	case "Version":
		o.Version = p.text()
	case "Service":
		o.Service = p.text()
	case "Lang":
		o.Lang = cmp.Or(p.text(), o.Lang)
	case "TracerVersion":
		o.TracerVersion = cmp.Or(p.text(), o.TracerVersion)
	case "RuntimeID":
		o.RuntimeID = p.text()
	case "GitCommitSha":
		o.GitCommitSHA = p.text()
	case "ProcessTags":
		o.ProcessTags = p.text()
	case "Stats":
		p.list(p.bucket)
	case "Sequence", "ProcessTagsHash": // the agent makes nothing of them
		p.reader.Uint(math.MaxUint64)
	case "ContainerID": // the same
		p.reader.Str()
	case "Tags": // and some tracers write those of DD_TAGS
		p.list(func() { p.reader.Str() })
	case "AgentAggregation", "ImageTag":
		p.must(p.reader.Str().Len == 0)
	default:
		p.unknown()
	}
}

func (p *Payload) bucket() {
	first := len(p.Groups)
	p.start = 0
	p.each(p.bucketField)
	p.must(p.start < 1<<62)
	for i := range p.Groups[first:] {
		p.Groups[first+i].Bucket = int64(p.start)
	}
}

func (p *Payload) bucketField(name string) {
	switch name {
	case "Start":
		p.start = p.reader.Uint(math.MaxUint64)
	case "Duration":
		width := p.reader.Uint(math.MaxUint64)
		p.must(p.Width == 0 || p.Width == width)
		p.Width = width
	case "Stats":
		p.list(p.group)
	case "AgentTimeShift":
		p.must(p.reader.Int() == 0)
	default:
		p.unknown()
	}
}
