package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/traces"
	"github.com/spf13/pflag"
)

// labelling is the flag for whose labels the spans of traces have.
type labelling bool

func (l *labelling) Set(text string) error {
	if text != "agent" && text != "tracer" {
		return fmt.Errorf("parse apm-labels: %q is neither agent nor tracer", text)
	}
	*l = text == "tracer"
	return nil
}

func (l *labelling) String() string {
	if *l {
		return "tracer"
	}
	return "agent"
}

func (*labelling) Type() string { return "agent|tracer" }

func addLabelFlags(f *pflag.FlagSet, labels *traces.Labels) {
	f.Var((*labelling)(&labels.OfTracer), "apm-labels", "labels of traces that are counted: agent for those that the agent gives them, tracer for those that their tracers' own statistics have, HTTP method and endpoint for instance")
	f.StringSliceVar(&labels.AdditionalTags, "apm-additional-tags", nil, "with --apm-labels=tracer: tags that become labels, as tag,tag (default: DD_TRACE_STATS_ADDITIONAL_TAGS)")
}

// The variables that tell tracers what their statistics hold. Where they are set for the
// daemon too, it does the same.
const (
	additionalTagsVariable = "DD_TRACE_STATS_ADDITIONAL_TAGS"
	renamingVariable       = "DD_TRACE_RESOURCE_RENAMING_ENABLED"
)

// completeLabels takes from tracers' variables what no flag said of labels.
func (o *runOptions) completeLabels() error {
	labels := &o.config.APM.Labels
	if !labels.OfTracer {
		return nil
	}
	if text := os.Getenv(additionalTagsVariable); text != "" && len(labels.AdditionalTags) == 0 {
		said := traces.Labels{AdditionalTags: tagNames(text)}
		if err := said.Check(); err != nil {
			return fmt.Errorf("read environment variable %s: %w", additionalTagsVariable, err)
		}
		labels.AdditionalTags, o.tagsVariable = said.AdditionalTags, additionalTagsVariable
	}
	renames, err := strconv.ParseBool(cmp.Or(os.Getenv(renamingVariable), "false"))
	if err != nil {
		return fmt.Errorf("read environment variable %s: %q is neither true nor false", renamingVariable, os.Getenv(renamingVariable))
	}
	labels.RenamesResources = renames
	return nil
}

// tagNames are the names of a list, each once.
func tagNames(text string) (names []string) {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// limitVariables are the limits that tracers can be told, and their labels here.
var limitVariables = []struct {
	name  string
	field span.Label
}{
	{"DD_TRACE_STATS_RESOURCE_CARDINALITY_LIMIT", span.LabelResource},
	{"DD_TRACE_STATS_HTTP_ENDPOINT_CARDINALITY_LIMIT", span.LabelHTTPEndpoint},
	{"DD_TRACE_STATS_PEER_TAGS_CARDINALITY_LIMIT", span.LabelPeerTag},
	{"DD_TRACE_STATS_ADDITIONAL_TAGS_CARDINALITY_LIMIT", span.LabelAdditionalTag},
}

// limitCardinalities reads the flag and, for fields that it leaves out, tracers' variables.
func (o *runOptions) limitCardinalities() (failed error) {
	budgets := &o.config.Aggregate.Budgets
	var said [span.LabelCount]bool
	for _, text := range o.cardinality {
		name, number, _ := strings.Cut(text, "=")
		field, known := span.ParseLabel(name)
		limit, err := strconv.Atoi(number)
		if !known || err != nil {
			failed = errors.Join(failed, fmt.Errorf("parse --cardinality-limit: %q is not field=N with a field of %s", text, strings.Join(span.LabelNames(), ", ")))
			continue
		}
		budgets[field], said[field] = limit, true
	}
	for _, v := range limitVariables {
		text := os.Getenv(v.name)
		if text == "" || said[v.field] {
			continue
		}
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 1 || limit > registry.MaxBudget {
			failed = errors.Join(failed, fmt.Errorf("read environment variable %s: %q is not a number from 1 to %d; mend it, or set --cardinality-limit %s=N",
				v.name, text, registry.MaxBudget, v.field))
			continue
		}
		budgets[v.field] = limit
		o.limits = append(o.limits, fmt.Sprintf("%s=%d", v.field, limit))
		o.limitVariables = append(o.limitVariables, v.name)
	}
	return failed
}
