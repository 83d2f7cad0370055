package datadog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/ignore"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Labels are which labels spans have.
type Labels struct {
	// OfTracer: those that the tracer's own statistics would have. Otherwise those that the agent
	// gives the same spans.
	OfTracer bool
	// AdditionalTags are the names of tags that tracers make labels of, as the operator has told
	// them. Of a tracer that takes fewer, the first are.
	AdditionalTags []string
	// RenamesResources: some tracers have HTTP labels only with this.
	RenamesResources bool
	// Ignore says which spans are not counted, as far as their tags say; nil: none is left out.
	Ignore *ignore.List
	// TraceIDs: spans can be asked for the ids of their traces, see Counter.Kept.
	TraceIDs bool
}

// Check says what is unusable.
func (l *Labels) Check() (err error) {
	for _, name := range l.AdditionalTags {
		if name == "" || len(name) > span.MaxLabel || strings.Contains(name, ":") {
			err = errors.Join(err, fmt.Errorf("check apm-additional-tags: "+
				"%q is no name of a tag: it has 1 to %d bytes and no colon", name, span.MaxLabel))
		}
	}
	return err
}
