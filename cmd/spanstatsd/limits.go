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

// limitOptions holds the flags of budgets and limits that have to be parsed together with others.
type limitOptions struct {
	cardinality []string
	ignore      []string
	buffer      string
}

// names declares the flags that limit labels. It stores the values of some of them directly in c.
func (o *limitOptions) names(c *daemon.Config) commandline.Group {
	g := commandline.NewGroup("Cardinality")
	f, agg := g.Flags, &c.Aggregate
	f.IntVar(&agg.MaxAggregates, "max-aggregates", agg.MaxAggregates,
		"maximum number of aggregates per interval, for all origins; additional keys are counted in the "+
			"overflow aggregate of their origin")
	f.StringSliceVar(&o.cardinality, "cardinality-limit", nil,
		"maximum number of distinct values per label, origin and interval: label=N,label=N, or "+
			"tag:NAME=N for one tag; repeatable (default: a budget for each label, see "+
			"docs/configuration.md)")
	f.Var(&agg.Masking, "mask-names",
		"when to replace identifiers in resources and endpoints by placeholders, as in /users/{id}: "+
			"over-budget, always, or never")
	f.StringArrayVar(&o.ignore, "ignore", nil,
		"spans that are not counted, as field=value or field=~regexp, such as resource=GET /healthz, "+
			"span.kind=internal, service=~^test- or attribute.url.path=~^/static/; repeatable (default: "+
			"none)")
	f.Var(commandline.Size(&agg.LabelBytes), "label-bytes",
		"memory for the labels of an interval; keys that do not fit are counted in the overflow aggregate of "+
			"their origin")
	f.Var(commandline.Size(&agg.SketchBytes), "sketch-bytes",
		"memory for the bins of all sketches; beyond it, the lowest bins of a sketch are merged")
	f.IntVar(&agg.MaxOrigins, "max-origins", agg.MaxOrigins,
		"maximum number of origins per interval; all additional origins are counted as one")
	return g
}

// group declares the other limits. It stores the values of most of them directly in c.
func (o *limitOptions) group(c *daemon.Config) commandline.Group {
	g := commandline.NewGroup("Limits")
	f := g.Flags
	f.IntVar(&c.Ingest.MaxConnections, "max-connections", c.Ingest.MaxConnections,
		"maximum number of concurrent connections to --socket")
	f.Var(commandline.Parsed(&c.Aggregate.Drainers, "cpu:1", "policy", aggregate.ParseDrainers), "drainers",
		"number of goroutines that aggregate spans: cpu:1 for one per core, cpu+1:0.25 for one plus "+
			"a quarter of the cores, fixed:4 for four")
	f.IntVar(&c.Aggregate.RingSlots, "ring-slots", c.Aggregate.RingSlots,
		"slots of the ring in front of each drainer, a power of two")
	f.Var(commandline.Choice(&o.buffer, "drop", "drop", "block"), "buffer",
		"what to do when a ring is full: drop the batch, or block the client")
	f.Var(commandline.Size(&c.Ingest.MaxByteRate), "max-byte-rate",
		"maximum bytes per second read from one connection to --socket; 0 for unlimited")
	f.Var(commandline.Size(&c.Admit.MaxKeyBytes), "max-key-bytes",
		"memory for the keys of one connection to --socket; numbered keys can take seven eighths")
	f.Var(commandline.Size(&c.Admit.MaxKeyBytesInAll), "max-key-bytes-total",
		"memory for the keys of all connections to --socket")
	f.Var(commandline.Size(&c.Flush.RetryBytes), "retry-bytes",
		"memory for queued payloads, per destination")
	f.DurationVar(&c.Flush.RetryAge, "retry-age", c.Flush.RetryAge,
		"how long a payload is queued before it is dropped")
	f.IntVar(&c.APM.MaxConnections, "apm-max-connections", c.APM.MaxConnections,
		"maximum number of concurrent connections to --apm-socket and --apm-addr")
	f.Var(commandline.Size(&c.APM.MaxBody), "apm-max-body",
		"maximum size of a trace request to --apm-socket or --apm-addr; a larger one is forwarded for the "+
			"agent to count")
	f.Var(commandline.Size(&c.APM.MaxBodyBytes), "apm-max-body-bytes",
		"memory for all concurrent requests to --apm-socket and --apm-addr")
	f.IntVar(&c.OTLP.MaxConnections, "otlp-max-connections", c.OTLP.MaxConnections,
		"maximum number of concurrent connections to --otlp-addr and --otlp-socket")
	f.Var(commandline.Size(&c.OTLP.MaxBody), "otlp-max-body",
		"maximum size of an OTLP request, before and after decompression")
	f.Var(commandline.Size(&c.OTLP.MaxBodyBytes), "otlp-max-body-bytes",
		"memory for all concurrent OTLP requests")
	f.IntVar(&c.Zipkin.MaxConnections, "zipkin-max-connections", c.Zipkin.MaxConnections,
		"maximum number of concurrent connections to --zipkin-addr and --zipkin-socket")
	f.Var(commandline.Size(&c.Zipkin.MaxBody), "zipkin-max-body",
		"maximum size of a Zipkin request, before and after decompression")
	f.Var(commandline.Size(&c.Zipkin.MaxBodyBytes), "zipkin-max-body-bytes",
		"memory for all concurrent Zipkin requests")
	return g
}

// complete parses the flags that are not stored directly in c, and stores their values in c. It returns
// the joined errors of all invalid flags.
func (o *limitOptions) complete(c *daemon.Config, s *settings) error {
	c.Admit.Block = o.buffer == "block"
	return errors.Join(checkRetry(c), o.completeIgnore(c), o.completeBudgets(c, s))
}

// checkRetry returns an error if a limit of the retry queue is 0. Exporters would use their default
// instead of 0.
func checkRetry(c *daemon.Config) error {
	if c.Flush.RetryAge == 0 || c.Flush.RetryBytes == 0 {
		return fmt.Errorf("parse --retry-age and --retry-bytes: %s and %d must be positive",
			c.Flush.RetryAge, c.Flush.RetryBytes)
	}
	return nil
}

// completeIgnore sets the rules of --ignore for all receivers.
func (o *limitOptions) completeIgnore(c *daemon.Config) error {
	rules, err := ignore.Parse(o.ignore)
	c.Admit.Ignore = rules
	c.APM.Labels.Ignore = rules
	c.OTLP.Labels.Ignore = rules
	c.Zipkin.Labels.Ignore = rules
	return err
}

// limitVariables contains the environment variables of tracers that limit the values of a label.
var limitVariables = []struct {
	name  string
	label span.Label
}{
	{"DD_TRACE_STATS_RESOURCE_CARDINALITY_LIMIT", span.LabelResource},
	{"DD_TRACE_STATS_HTTP_ENDPOINT_CARDINALITY_LIMIT", span.LabelHTTPEndpoint},
	{"DD_TRACE_STATS_PEER_TAGS_CARDINALITY_LIMIT", span.LabelPeerTag},
	{"DD_TRACE_STATS_ADDITIONAL_TAGS_CARDINALITY_LIMIT", span.LabelAdditionalTag},
}

// completeBudgets sets the budgets of labels, their maximum numbers of distinct values. A budget is from
// --cardinality-limit, or from the environment variable that configures it in tracers.
func (o *limitOptions) completeBudgets(c *daemon.Config, s *settings) error {
	limitedByFlag, flagErr := o.setFlagBudgets(c)
	variableErr := setVariableBudgets(c, s, limitedByFlag)
	return errors.Join(flagErr, variableErr)
}

// setFlagBudgets applies --cardinality-limit, which limits the values of labels, as in resource=500, and
// of tags, as in tag:tenant.id=200. It returns the labels that the flag limits.
func (o *limitOptions) setFlagBudgets(c *daemon.Config) (limited map[span.Label]bool, err error) {
	limited = map[span.Label]bool{}
	for _, element := range o.cardinality {
		name, number, _ := strings.Cut(element, "=")
		if tag, isTag := strings.CutPrefix(name, "tag:"); isTag {
			err = errors.Join(err, limitTag(c, "cardinality-limit", tag, number))
			continue
		}
		label, isLabel := span.ParseLabel(name)
		limit, numberErr := strconv.Atoi(number)
		if !isLabel || numberErr != nil {
			err = errors.Join(err, fmt.Errorf("parse --cardinality-limit: %q is not field=N; the "+
				"fields are %s", element, strings.Join(span.LabelNames(), ", ")))
			continue
		}
		c.Aggregate.Budgets[label] = limit
		limited[label] = true
	}
	return limited, err
}

// setVariableBudgets reads the environment variables with which tracers limit the values of a label, and
// applies these limits. It skips labels that are in limitedByFlag.
func setVariableBudgets(c *daemon.Config, s *settings, limitedByFlag map[span.Label]bool) (err error) {
	var budgets, variables []string
	for _, v := range limitVariables {
		value := os.Getenv(v.name)
		if value == "" || limitedByFlag[v.label] {
			continue
		}
		budget, numberErr := strconv.Atoi(value)
		isValid := numberErr == nil && budget >= 1 && budget <= registry.MaxBudget
		if !isValid {
			err = errors.Join(err, fmt.Errorf("read environment variable %s: %q is not a number from "+
				"1 to %d; fix it, or set --cardinality-limit %s=N", v.name, value, registry.MaxBudget, v.label))
			continue
		}
		c.Aggregate.Budgets[v.label] = budget
		budgets = append(budgets, fmt.Sprintf("%s=%d", v.label, budget))
		variables = append(variables, v.name)
	}
	if len(budgets) > 0 {
		s.recordBudgets(strings.Join(budgets, ","), strings.Join(variables, ", "))
	}
	return err
}

// recordBudgets records in the setting of --cardinality-limit that environment variables add budgets.
func (s *settings) recordBudgets(budgets, variables string) {
	const flag = "cardinality-limit"
	if s.isSet(flag) {
		s.setting(flag).Effective = "and " + budgets + " by " + variables
		return
	}
	s.setting(flag).Effective = budgets
	s.recordVariables(flag, variables)
}
