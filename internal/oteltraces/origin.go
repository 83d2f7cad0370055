package oteltraces

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// unknownService is what OpenTelemetry calls a service that says no name.
const unknownService = "unknown_service"

// originCache remembers the origins of resources, by their bytes: a process writes its
// resource alike in every request. It holds no part of a body.
type originCache struct {
	seed  maphash.Seed
	known []knownOrigin
	turn  int // whose place the next one takes
}

type knownOrigin struct {
	hash   uint64
	said   []byte
	origin *span.Origin
}

const (
	// mostOrigins and mostSaid bound what is remembered: of a resource that says more,
	// the origin is made anew each time.
	mostOrigins = 64
	mostSaid    = 8 << 10
)

// of is the origin of a resource. It never changes.
func (o *originCache) of(p *payload, r *resource) *span.Origin {
	said := r.said.of(p.body)
	if len(said) > mostSaid {
		return p.origin(r)
	}
	if o.known == nil {
		o.seed = maphash.MakeSeed()
	}
	hash := maphash.Bytes(o.seed, said)
	for i := range o.known {
		if k := &o.known[i]; k.hash == hash && bytes.Equal(k.said, said) {
			return k.origin
		}
	}
	origin := p.origin(r)
	k := knownOrigin{hash, slices.Clone(said), origin}
	if len(o.known) < mostOrigins {
		o.known = append(o.known, k)
	} else {
		o.known[o.turn%mostOrigins] = k
		o.turn++
	}
	return origin
}

// origin makes the origin that a resource says. The version of its SDK is written as the
// agent writes it.
func (p *payload) origin(r *resource) *span.Origin {
	return &span.Origin{
		Service:         cmp.Or(p.said(r, labelService), unknownService),
		Env:             cmp.Or(p.said(r, labelEnvironment), p.said(r, labelOldEnvironment)),
		Version:         p.said(r, labelServiceVersion),
		Host:            p.said(r, labelHost),
		ContainerID:     p.said(r, labelContainer),
		RuntimeID:       p.said(r, labelInstance),
		Lang:            p.said(r, labelLanguage),
		LangVersion:     p.said(r, labelRuntimeVersion),
		LangInterpreter: p.said(r, labelRuntimeName),
		TracerVersion:   span.OTLPVersion + p.said(r, labelSDKVersion),
		GitCommitSHA:    p.said(r, labelCommit),
	}
}

// said is a copy of what a resource says by an attribute, of several by the first.
func (p *payload) said(r *resource, l label) string {
	for i := r.firstTag; i < r.lastTag; i++ {
		if t := &p.tags[i]; t.label == l {
			return span.Text(string(t.append(nil, p.body)), span.MaxOriginField)
		}
	}
	return ""
}
