package traces

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Policy is what the agent wants counted, and what it would leave out.
type Policy struct {
	labels   *labels
	kinds    kindSet          // counted for their kind alone
	ignore   []*regexp.Regexp // of a root's resource: its trace is not counted
	ofTracer bool
}

// Labels are which labels spans have.
type Labels struct {
	// OfTracer: those that the tracer's own statistics would have. Otherwise those that the
	// agent gives the same spans.
	OfTracer bool
	// AdditionalTags are the names of tags that tracers make labels of, as the operator has
	// told them. Of a tracer that takes fewer, the first are.
	AdditionalTags []string
	// RenamesResources: some tracers have HTTP labels only with this.
	RenamesResources bool
	// TraceIDs: spans can be asked for the ids of their traces, see Counter.Kept.
	TraceIDs bool
}

// Check says what is unusable.
func (l *Labels) Check() (err error) {
	for _, name := range l.AdditionalTags {
		if name == "" || len(name) > span.MaxLabel || strings.Contains(name, ":") {
			err = errors.Join(err, fmt.Errorf("check apm-additional-tags: %q is no name of a tag: it has 1 to %d bytes and no colon", name, span.MaxLabel))
		}
	}
	return err
}

// NewPolicy reads an agent's features. It reports false where the agent asks for
// what only it can do: its traces are then left to it.
func NewPolicy(peerTags, spanKinds, ignoreResources []string, more Labels) (*Policy, bool) {
	l, ok := newLabels(peerTags, more)
	p := &Policy{labels: l, ofTracer: more.OfTracer}
	for k, name := range kindNames {
		if kind(k) != kindOther && slices.Contains(spanKinds, name) {
			p.kinds |= kindsOf(kind(k))
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

// Tags are the names of all tags that some rule asks for: nothing else of a span's tags
// changes what it is counted as.
func (p *Policy) Tags() []string {
	return slices.DeleteFunc(slices.Clone(p.labels.names), func(name string) bool { return name == "" })
}

// rulebook is whose rules hold for a tracer of that language.
func (p *Policy) rulebook(lang string) rulebookID {
	if p.ofTracer {
		return rulebookOf(lang)
	}
	return ofAgent
}
