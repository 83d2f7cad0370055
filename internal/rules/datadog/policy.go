package datadog

import (
	"regexp"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/ignore"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// Policy is what the agent wants counted, and what it would leave out.
type Policy struct {
	labels   *labels
	ignored  *ignore.List      // spans that are not counted for their tags
	kinds    spantable.KindSet // counted for their kind alone
	ignore   []*regexp.Regexp  // of a root's resource: its trace is not counted
	ofTracer bool
	traceIDs bool // are asked for
}

// NewPolicy reads an agent's features. It reports false where the agent asks for what only it can
// do: its traces are then left to it.
func NewPolicy(peerTags, spanKinds, ignoreResources []string, more Labels) (*Policy, bool) {
	l, ok := newLabels(peerTags, more)
	p := &Policy{labels: l, ignored: more.Ignore, ofTracer: more.OfTracer, traceIDs: more.TraceIDs}
	for k := range spantable.Kinds {
		if k != spantable.KindOther && slices.Contains(spanKinds, k.String()) {
			p.kinds |= spantable.KindsOf(k)
		}
	}
	for _, text := range ignoreResources {
		r, err := regexp.Compile(text)
		if err != nil {
			return nil, false
		}
		p.ignore = append(p.ignore, r)
	}
	return p, ok
}

// Tags are the names of all tags that some rule asks for: nothing else of a span's tags changes
// what it is counted as.
func (p *Policy) Tags() []string {
	return slices.DeleteFunc(slices.Clone(p.labels.names), func(name string) bool { return name == "" })
}

// Names are those tags with their labels, for a decoder.
func (p *Policy) Names() *spantable.Names { return p.labels.table }

// ignores says whether the agent would leave a trace out for its root's resource.
func (p *Policy) ignores(resource []byte) bool {
	return slices.ContainsFunc(p.ignore, func(r *regexp.Regexp) bool { return r.Match(resource) })
}
