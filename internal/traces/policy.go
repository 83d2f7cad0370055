package traces

import (
	"regexp"
	"slices"
)

// Policy is what the agent wants counted, and what it would leave out.
type Policy struct {
	labels *labels
	kinds  [len(kindNames)]bool // counted for their kind alone
	ignore []*regexp.Regexp     // of a root's resource: its trace is not counted
}

// NewPolicy reads an agent's features. It reports false where the agent asks for
// what only it can do: its traces are then left to it.
func NewPolicy(peerTags, spanKinds, ignoreResources []string) (*Policy, bool) {
	l, ok := newLabels(peerTags)
	p := &Policy{labels: l}
	for k, name := range kindNames {
		p.kinds[k] = slices.Contains(spanKinds, name)
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
