package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
)

// limitOptions are the flags of budgets and limits whose texts need more than their own flag to be parsed.
type limitOptions struct {
	cardinality []string
	ignore      []string
	buffer      string
}

func (o *limitOptions) names(c *daemon.Config) commandline.Group {
	g := commandline.NewGroup("Names and budgets")
	f, agg := g.Flags, &c.Aggregate
	f.IntVar(&agg.MaxAggregates, "max-aggregates", agg.MaxAggregates,
		"most aggregates of an interval, of all origins together; a key beyond them is counted in its "+
			"origin's overflow aggregate")
	f.StringSliceVar(&o.cardinality, "cardinality-limit", nil,
		"most distinct values of a field, for each origin and interval, as field=N,field=N, or of one tag "+
			"as tag:NAME=N; may be repeated (default: a budget for each field, see docs/tuning.md)")
	f.Var(&agg.Masking, "mask-names",
		"when identifiers in resources and endpoints become placeholders, as in /users/{id}: over-budget "+
			"where the name would be lost otherwise, always, or never")
	f.StringArrayVar(&o.ignore, "ignore", nil,
		"spans that are not counted, wherever they come from, as resource=GET /healthz, span.kind=internal, "+
			"service=~^test- or attribute.url.path=~^/static/, where ~ begins a pattern; may be repeated "+
			"(default: none)")
	f.Lookup("ignore").DefValue = ""
	f.Var(commandline.Size(&agg.LabelBytes), "label-bytes",
		"memory for the labels of an interval's keys; a key beyond it is counted in its origin's overflow "+
			"aggregate")
	f.Var(commandline.Size(&agg.SketchBytes), "sketch-bytes",
		"memory for the bins of all sketches; beyond it the lowest bins of a sketch become one")
	f.IntVar(&agg.MaxOrigins, "max-origins", agg.MaxOrigins,
		"most origins of an interval; those beyond them are counted as one")
	return g
}

func (o *limitOptions) group(c *daemon.Config) commandline.Group {
	g := commandline.NewGroup("Limits")
	f := g.Flags
	f.IntVar(&c.Ingest.MaxConnections, "max-connections", c.Ingest.MaxConnections,
		"most tracers that are connected to --socket at once")
	f.Var(commandline.Parsed(&c.Aggregate.Drainers, "cpu:1", "policy", aggregate.ParseDrainers), "drainers",
		"how many goroutines count: cpu:1 for one a core, cpu+1:0.25 for one and a quarter of the cores, "+
			"fixed:4 for four")
	f.IntVar(&c.Aggregate.RingSlots, "ring-slots", c.Aggregate.RingSlots,
		"slots of the ring before each drainer, a power of two")
	f.Var(commandline.Choice(&o.buffer, "drop", "drop", "block"), "buffer",
		"what happens to a batch that finds a ring full: drop loses it, block lets its tracer wait")
	f.Var(commandline.Size(&c.Ingest.MaxByteRate), "max-byte-rate",
		"most bytes a second that are read from one connection to --socket; 0 for any")
	f.Var(commandline.Size(&c.Admit.MaxKeyBytes), "max-key-bytes",
		"memory for the keys that one connection to --socket has remembered, of which tracers are told "+
			"seven eighths")
	f.Var(commandline.Size(&c.Admit.MaxKeyBytesInAll), "max-key-bytes-in-all",
		"memory for the keys that all connections have remembered")
	f.Var(commandline.Size(&c.Flush.RetryBytes), "retry-bytes",
		"memory for payloads that wait for a destination, for each destination")
	f.DurationVar(&c.Flush.RetryAge, "retry-age", c.Flush.RetryAge,
		"how long a payload may wait for its destination")
	f.IntVar(&c.APM.MaxConnections, "apm-max-connections", c.APM.MaxConnections,
		"most tracers that are connected to --apm-socket and --apm-addr at once")
	f.Var(commandline.Size(&c.APM.MaxBody), "apm-max-body",
		"longest request with traces to --apm-socket or --apm-addr that is counted; a longer one is left "+
			"to the agent")
	f.Var(commandline.Size(&c.APM.MaxBodyBytes), "apm-max-body-bytes",
		"memory for all requests to --apm-socket and --apm-addr at a time")
	f.IntVar(&c.OTLP.MaxConnections, "otlp-max-connections", c.OTLP.MaxConnections,
		"most SDKs that are connected to --otlp-addr and --otlp-socket at once")
	f.Var(commandline.Size(&c.OTLP.MaxBody), "otlp-max-body",
		"longest request of OTLP that is taken, as it comes and uncompressed")
	f.Var(commandline.Size(&c.OTLP.MaxBodyBytes), "otlp-max-body-bytes",
		"memory for all requests of OTLP at a time")
	f.IntVar(&c.Zipkin.MaxConnections, "zipkin-max-connections", c.Zipkin.MaxConnections,
		"most senders that are connected to --zipkin-addr and --zipkin-socket at once")
	f.Var(commandline.Size(&c.Zipkin.MaxBody), "zipkin-max-body",
		"longest request of Zipkin that is taken, as it comes and uncompressed")
	f.Var(commandline.Size(&c.Zipkin.MaxBodyBytes), "zipkin-max-body-bytes",
		"memory for all requests of Zipkin at a time")
	return g
}

// complete parses the rest into the configuration.
func (o *limitOptions) complete(c *daemon.Config, s *settings) error {
	var badRetries error
	if c.Flush.RetryAge == 0 || c.Flush.RetryBytes == 0 { // they mean the default to the exporters
		badRetries = fmt.Errorf("parse --retry-age and --retry-bytes: %s and %d must be positive",
			c.Flush.RetryAge, c.Flush.RetryBytes)
	}
	c.Admit.Block = o.buffer == "block"
	ignored, badIgnore := ignore.Parse(o.ignore)
	c.Admit.Ignore, c.APM.Labels.Ignore = ignored, ignored
	c.OTLP.Labels.Ignore, c.Zipkin.Labels.Ignore = ignored, ignored
	return errors.Join(badRetries, badIgnore, o.completeBudgets(c, s))
}

// limitVariables are the environment variables of tracers that limit the values of a label.
var limitVariables = []struct {
	name  string
	label span.Label
}{
	{"DD_TRACE_STATS_RESOURCE_CARDINALITY_LIMIT", span.LabelResource},
	{"DD_TRACE_STATS_HTTP_ENDPOINT_CARDINALITY_LIMIT", span.LabelHTTPEndpoint},
	{"DD_TRACE_STATS_PEER_TAGS_CARDINALITY_LIMIT", span.LabelPeerTag},
	{"DD_TRACE_STATS_ADDITIONAL_TAGS_CARDINALITY_LIMIT", span.LabelAdditionalTag},
}

// completeBudgets parses --cardinality-limit, and takes limits that it leaves out from tracers' variables.
func (o *limitOptions) completeBudgets(c *daemon.Config, s *settings) (mistakes error) {
	isGiven := map[span.Label]bool{}
	for _, given := range o.cardinality {
		name, number, _ := strings.Cut(given, "=")
		if tag, isTag := strings.CutPrefix(name, "tag:"); isTag {
			mistakes = errors.Join(mistakes, limitTag(c, "cardinality-limit", tag, number))
			continue
		}
		label, isLabel := span.ParseLabel(name)
		limit, err := strconv.Atoi(number)
		if !isLabel || err != nil {
			mistakes = errors.Join(mistakes, fmt.Errorf("parse --cardinality-limit: %q is not field=N with a "+
				"field of %s", given, strings.Join(span.LabelNames(), ", ")))
			continue
		}
		c.Aggregate.Budgets[label], isGiven[label] = limit, true
	}
	var limits, variables []string
	for _, v := range limitVariables {
		given := os.Getenv(v.name)
		if given == "" || isGiven[v.label] {
			continue
		}
		limit, err := strconv.Atoi(given)
		if err != nil || limit < 1 || limit > registry.MaxBudget {
			mistakes = errors.Join(mistakes, fmt.Errorf("read environment variable %s: %q is not a number from "+
				"1 to %d; fix it, or set --cardinality-limit %s=N", v.name, given, registry.MaxBudget, v.label))
			continue
		}
		c.Aggregate.Budgets[v.label] = limit
		limits = append(limits, fmt.Sprintf("%s=%d", v.label, limit))
		variables = append(variables, v.name)
	}
	setting, effective, from := s.of("cardinality-limit"), strings.Join(limits, ","), strings.Join(variables, ", ")
	if effective != "" && s.isSet("cardinality-limit") {
		setting.Effective = "and " + effective + " by " + from
	} else if effective != "" {
		setting.Effective = effective
		s.fromVariable("cardinality-limit", from)
	}
	return mistakes
}
