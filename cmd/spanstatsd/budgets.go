package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
)

// nameOptions are flags about names and their budgets, as far as they are to be read.
type nameOptions struct {
	cardinality []string
	ignore      []string
}

func (o *nameOptions) group(c *daemon.Config) *commandline.Group {
	g := commandline.NewGroup("Cardinality")
	agg := &c.Aggregate
	f := g.First
	f.IntVar(&agg.MaxAggregates, "max-aggregates", agg.MaxAggregates,
		"maximum number of aggregates per interval, for all origins; further keys are counted in "+
			"their origin's overflow aggregate")
	f.StringSliceVar(&o.cardinality, "cardinality-limit", nil,
		"maximum number of distinct values per label, origin and interval: label=N,label=N, or "+
			"tag:NAME=N for one tag; repeatable (default: a budget for each label, see "+
			"docs/configuration.md)")
	f.Var(&agg.Masking, "mask-names",
		"when to replace identifiers in resources and endpoints by placeholders, as in /users/{id}: "+
			"over-budget, always, or never")

	f = g.Rest
	f.StringArrayVar(&o.ignore, "ignore", nil,
		"spans that are not counted, as field=value or field=~regexp, such as resource=GET /healthz, "+
			"span.kind=internal, service=~^test- or attribute.url.path=~^/static/; repeatable (default: "+
			"none)")
	f.Lookup("ignore").DefValue = ""
	f.Var(commandline.Size(&agg.LabelBytes), "label-bytes",
		"memory for the labels of an interval; further keys are counted in their origin's overflow "+
			"aggregate")
	f.Var(commandline.Size(&agg.SketchBytes), "sketch-bytes",
		"memory for the bins of all sketches; beyond it, the lowest bins of a sketch are merged")
	f.IntVar(&agg.MaxOrigins, "max-origins", agg.MaxOrigins,
		"maximum number of origins per interval; further ones are counted as one")
	return g
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

// complete turns them into the configuration.
func (o *nameOptions) complete(c *daemon.Config, s *settings) error {
	ignored, err := ignore.Parse(o.ignore)
	c.Admit.Ignore, c.APM.Labels.Ignore = ignored, ignored
	c.OTLP.Labels.Ignore, c.Zipkin.Labels.Ignore = ignored, ignored
	return errors.Join(err, o.completeBudgets(c, s)) //nolint:wrapcheck // it says what to do
}

// completeBudgets reads the limits, and for fields that they leave out tracers' variables.
func (o *nameOptions) completeBudgets(c *daemon.Config, s *settings) (failed error) {
	budgets := &c.Aggregate.Budgets
	var said [span.LabelCount]bool
	for _, given := range o.cardinality {
		name, number, _ := strings.Cut(given, "=")
		if tag, isTag := strings.CutPrefix(name, "tag:"); isTag && tag != "" {
			limit, err := strconv.Atoi(number)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("parse --cardinality-limit: %q is not tag:NAME=N; "+
					"give a number of values, as tag:tenant.id=200", given))
			}
			c.Aggregate.LimitTag(tag, limit)
			continue
		}
		field, known := span.ParseLabel(name)
		limit, err := strconv.Atoi(number)
		if !known || err != nil {
			failed = errors.Join(failed, fmt.Errorf("parse --cardinality-limit: %q is not field=N with a "+
				"field of %s",
				given, strings.Join(span.LabelNames(), ", ")))
			continue
		}
		budgets[field], said[field] = limit, true
	}
	var limits, variables []string
	for _, v := range limitVariables {
		given := os.Getenv(v.name)
		if given == "" || said[v.field] {
			continue
		}
		limit, err := strconv.Atoi(given)
		if err != nil || limit < 1 || limit > registry.MaxBudget {
			failed = errors.Join(failed, fmt.Errorf("read environment variable %s: %q is not a number from "+
				"1 to %d; "+
				"mend it, or set --cardinality-limit %s=N", v.name, given, registry.MaxBudget, v.field))
			continue
		}
		budgets[v.field] = limit
		limits = append(limits, fmt.Sprintf("%s=%d", v.field, limit))
		variables = append(variables, v.name)
	}
	switch all := strings.Join(limits, ","); {
	case all == "":
	case s.isSet("cardinality-limit"):
		s.of("cardinality-limit").Effective = fmt.Sprintf("and %s by %s", all, strings.Join(variables, ", "))
	default:
		s.of("cardinality-limit").Effective = all
		s.fromVariable("cardinality-limit", strings.Join(variables, ", "))
	}
	return failed
}
