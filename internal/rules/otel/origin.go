package otel

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// unknownService is what OpenTelemetry calls a service that says no name.
const unknownService = "unknown_service"

// origins remembers what was made of resources, by their bytes: a process writes its resource
// alike in every request. It holds no part of a body.
type origins struct {
	known []knownOrigin
	turn  int // whose place the next one takes
}

type knownOrigin struct {
	said   []byte
	origin *span.Origin // never changes
}

const (
	// mostResources and mostSaid bound what is remembered: of a resource that says more, the
	// origin is made anew each time.
	mostResources = 64
	mostSaid      = 8 << 10
)

// of is the origin of a resource.
func (o *origins) of(r *otlp.Request, of *otlp.Resource) *span.Origin {
	said := r.Bytes(of.Said)
	if len(said) > mostSaid {
		return origin(r, of)
	}
	for i := range o.known {
		if bytes.Equal(o.known[i].said, said) {
			return o.known[i].origin
		}
	}
	k := knownOrigin{slices.Clone(said), origin(r, of)}
	if len(o.known) < mostResources {
		o.known = append(o.known, k)
	} else {
		o.known[o.turn%mostResources] = k
		o.turn++
	}
	return k.origin
}

// origin makes the origin that a resource says, as it may be kept. The version of its SDK is
// written as the agent writes it.
func origin(r *otlp.Request, of *otlp.Resource) *span.Origin {
	// said is a copy of what it says by an attribute, of several by the first.
	said := func(l spantable.Label) string {
		tags := r.Tags[of.FirstTag:of.LastTag]
		i := slices.IndexFunc(tags, func(t spantable.Tag) bool { return t.Label == l })
		if i < 0 {
			return ""
		}
		return span.Text(string(r.AppendValue(nil, &tags[i])), span.MaxOriginField)
	}
	o := &span.Origin{
		Service:         cmp.Or(said(labelService), unknownService),
		Env:             cmp.Or(said(labelEnvironment), said(labelOldEnvironment)),
		Version:         said(labelServiceVersion),
		Host:            said(labelHost),
		ContainerID:     said(labelContainer),
		RuntimeID:       said(labelInstance),
		Lang:            said(labelLanguage),
		LangVersion:     said(labelRuntimeVersion),
		LangInterpreter: said(labelRuntimeName),
		TracerVersion:   span.OTLPVersion + said(labelSDKVersion),
		GitCommitSHA:    said(labelCommit),
	}
	o.Normalize()
	return o
}
