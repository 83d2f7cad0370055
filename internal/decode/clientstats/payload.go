package clientstats

import (
	"cmp"
	"errors"

	"github.com/spanstatsd/spanstatsd/internal/payload"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Payload is what a tracer that computes its own statistics sends in one request.
type Payload struct {
	groups
	Width  uint64      // of all buckets, in nanoseconds
	Origin span.Origin // as long as its tracer likes, and part of the body too

	buckets int // that were read
	first   int // group of the one that is being read
}

// Read reads a body. said is what the request's headers say of the origin: what the
// body says of the same comes before it.
func (p *Payload) Read(body []byte, said span.Origin) error {
	p.forget()
	p.limits = limitsOf(len(body))
	read, err := payload.Walk{MaxTags: p.limits.tags, Group: p.add, Bucket: p.endBucket}.Decode(body)
	switch {
	case errors.Is(err, ErrMapping):
		return ErrMapping
	case errors.Is(err, ErrUnfit), errors.Is(err, payload.ErrLoses):
		return ErrUnfit
	case err != nil:
		return ErrUnread
	case len(p.Groups) == 0: // a probe is the agent's to answer
		return ErrUnfit
	case read.AgentAggregation != "" || read.ImageTag != "": // we have no place for them
		return ErrUnfit
	}
	p.Origin = said
	p.setOrigin(read)
	return nil
}

// setOrigin has what the body says. Of the rest of it (the sequence, the container's id, the
// tags of DD_TAGS that some tracers write) the agent makes nothing.
func (p *Payload) setOrigin(read *payload.Payload) {
	o := &p.Origin
	o.Host, o.Env, o.Version, o.Service = read.Hostname, read.Env, read.Version, read.Service
	o.RuntimeID, o.GitCommitSHA, o.ProcessTags = read.RuntimeID, read.GitCommitSha, read.ProcessTags
	o.Lang, o.TracerVersion = cmp.Or(read.Lang, o.Lang), cmp.Or(read.TracerVersion, o.TracerVersion)
}

// endBucket is called behind the groups of a bucket.
func (p *Payload) endBucket(b *payload.Bucket) error {
	if b.AgentTimeShift != 0 || b.Start >= 1<<62 || p.buckets > 0 && b.Duration != p.Width {
		return ErrUnfit
	}
	p.buckets++
	p.Width = b.Duration
	for i := range p.Groups[p.first:] {
		p.Groups[p.first+i].Bucket = int64(b.Start)
	}
	p.first = len(p.Groups)
	return nil
}

// forget lets go of the body and of all that was read of it.
func (p *Payload) forget() {
	clear(p.Groups)
	*p = Payload{groups: groups{Groups: p.Groups[:0], bins: p.bins[:0]}}
}

// Next is the Payload for the next body. It holds nothing of the last one, nor the memory
// that only a very large one needed.
func (p *Payload) Next() *Payload {
	if cap(p.bins) > maxBins/8 || cap(p.Groups) > maxGroups/4 {
		return &Payload{}
	}
	p.forget()
	return p
}
