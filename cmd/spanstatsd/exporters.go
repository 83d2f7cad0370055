package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	sdkotlp "github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
	"github.com/spanstatsd/spanstatsd/internal/span/semconv"
)

// exporterOptions holds the flags of exporters.
type exporterOptions struct {
	ignored     string // why an environment variable with an endpoint is ignored
	agentURL    string
	endpoint    string
	temporality otlp.Temporality
	dialect     points.Dialect
	dimensions  string
	resource    []string
	histogram   points.Histogram
	instance    string
	exemplars   int

	prometheus           string // on, off, or empty if it depends on the other destinations
	prometheusAddr       string
	prometheusHistograms string
	prometheusBounds     []float64
	prometheusDialect    points.Dialect
	prometheusDimensions string

	serviceGraph      bool
	serviceGraphEdges int
	serviceGraphNames map[string]string

	measures   []string
	objectives objectiveOptions
}

const (
	on         = "on"
	off        = "off"
	noInstance = "none"

	// values of --prometheus-histograms
	onlyNative  = "native"
	onlyClassic = "classic"

	defaultEdges = 200
	maxEdges     = 10_000
)

// group declares the flags. It stores the values of some of them directly in c.
func (o *exporterOptions) group(c *daemon.Config) commandline.Group {
	g := commandline.NewGroup("Exporters")
	f := g.Flags
	o.dimensions, o.prometheusDimensions = points.AllDimensions, points.AllDimensions
	f.Var(commandline.Text(&o.agentURL, "url"), "agent-url",
		"URL of the Datadog agent, http://host:port or unix:///path; off for none (default: "+
			"DD_TRACE_AGENT_URL, or DD_AGENT_HOST and DD_TRACE_AGENT_PORT; otherwise "+
			"http://127.0.0.1:8126, auto-discovered unless --apm-socket or --apm-addr needs it; off if "+
			"another destination is set)")
	f.Var(commandline.Text(&o.endpoint, "url"), "otlp-metrics-endpoint",
		"export statistics as OTLP metrics to this URL, http://host:4318/v1/metrics, https://... or "+
			"unix:///path; off for none (default: OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, or "+
			"OTEL_EXPORTER_OTLP_ENDPOINT with /v1/metrics; otherwise none)")
	f.Var(commandline.Choice(&o.prometheus, "", on, off), "prometheus",
		"serve statistics for Prometheus at /metrics/spans of --http-addr: on (also without a value) "+
			"or off (default: on if no other destination is set)")
	f.Lookup("prometheus").NoOptDefVal = on
	f.DurationVar(&c.Aggregate.FlushInterval, "flush-interval", c.Aggregate.FlushInterval,
		"length of an interval, after which statistics are exported, 1s to 10s")
	f.BoolVar(&c.Aggregate.ConflateRuntimes, "conflate-runtimes", c.Aggregate.ConflateRuntimes,
		"merge origins that differ only in their runtime ID")
	f.Var(commandline.Choice(&o.temporality, "", otlp.Delta, otlp.Cumulative), "otlp-temporality",
		"temporality of OTLP metrics: delta, or cumulative for totals since the start of a series "+
			"(default: OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE, otherwise delta)")
	f.Var(commandline.Choice(&o.dialect, points.Spanmetrics, points.Spanmetrics, points.Conventions, points.Datadog),
		"otlp-dialect", "names of OTLP metrics and attributes: spanmetrics as in the Collector's connector, conventions "+
			"as in OpenTelemetry's SDKs (http.server.request.duration), datadog as in Datadog's tracers")
	f.Var(commandline.Parsed(&o.histogram, points.Exponential, "kind[:bounds]", points.ParseHistogram),
		histogramFlag, "histograms of OTLP metrics: exponential, explicit with optional bounds in seconds "+
			"(explicit:sdk, explicit:0.01,0.1,1), or explicit-ms to export milliseconds; "+
			"in the dialect conventions, explicit:sdk is the default")
	f.Var(commandline.Text(&o.dimensions, "names"), "otlp-dimensions",
		"optional attributes of OTLP metrics, except in the dialect datadog: all, none, or a list such as "+
			"http.route,peer.service or all,-peer.service; a list can add up to eight span or resource "+
			"attributes, each with an optional budget, such as all,tenant.id=200")
	f.Var(commandline.Parsed(&o.resource, "identifying", "names", otel.ParseResource), "otlp-resource-attributes",
		"resource attributes of OTLP input that are kept, and that distinguish origins: identifying "+
			"for service.instance.id, service.namespace and Kubernetes attributes, a list of names, or "+
			"none")
	f.IntVar(&o.exemplars, "otlp-exemplars", exemplars.DefaultLimit,
		"maximum number of exemplars per interval, in OTLP metrics and for Prometheus; 0 for none")
	f.Var(commandline.Text(&o.instance, "name"), "otlp-instance-id",
		"value of the attribute collector.instance.id, which tells the series of several daemons apart; none "+
			"to omit the attribute, which the dialect datadog never has (default: random)")
	f.Var(commandline.Text(&o.prometheusAddr, "address"), "prometheus-addr",
		"separate listen address for Prometheus scrapes, such as :9127 (default: the address in --http-addr)")
	f.Var(commandline.Choice(&o.prometheusHistograms, "both", "both", onlyNative, onlyClassic),
		"prometheus-histograms", "histograms for Prometheus: classic, native over protobuf, or both")
	f.Var(commandline.Parsed(&o.prometheusBounds, points.ConnectorBounds, "bounds", points.ParseBounds),
		"prometheus-buckets", "upper bounds of classic histogram buckets: a list of seconds such as "+
			"0.1,0.5,1, connector for those of the Collector's spanmetrics connector, or sdk for those of "+
			"OpenTelemetry's HTTP conventions")
	f.Var(commandline.Choice(&o.prometheusDialect, points.Spanmetrics, points.Spanmetrics, points.Conventions,
		points.Tempo),
		"prometheus-dialect", "names of metrics and labels for Prometheus: spanmetrics as in the Collector's connector, "+
			"conventions as in OpenTelemetry's SDKs (http_server_request_duration_seconds), tempo as in Grafana "+
			"Tempo's metrics-generator")
	f.Var(commandline.Text(&o.prometheusDimensions, "names"), "prometheus-dimensions",
		"optional labels for Prometheus, by attribute name: all, none, or a list such as "+
			"http.route,peer.service or all,-peer.service; a list can add up to eight span or resource "+
			"attributes, each with an optional budget, such as all,tenant.id=200")
	f.BoolVar(&o.serviceGraph, "service-graph", false,
		"also export traces_service_graph_* metrics to Prometheus and as OTLP metrics: which service calls "+
			"which, computed from client spans")
	f.IntVar(&o.serviceGraphEdges, "service-graph-edges", defaultEdges,
		"maximum number of edges in the service graph; requests on all other edges are counted in one overflow edge")
	f.Var(commandline.Parsed(&o.serviceGraphNames, "", "host=name", points.ParseNodeNames), "service-graph-names",
		"names of nodes in the service graph for host names and addresses, such as "+
			"10.0.0.7=payments,*.rds.amazonaws.com=orders-db")
	f.StringArrayVar(&o.measures, "measure", nil,
		"also record the values of a span attribute in a histogram: NAME=ATTRIBUTE[,unit[,label...]], or a preset, "+
			strings.Join(measure.PresetNames(), ", ")+"; repeatable (default: none)")
	o.objectives.addTo(f)
	return g
}

// complete selects the destinations and creates their exporters. If no destination is configured, these
// are Prometheus, and an agent that is auto-discovered.
func (o *exporterOptions) complete(c *daemon.Config, s *settings) error {
	var agentVariables string
	if o.agentURL == "" {
		o.agentURL, agentVariables = agent.FromEnvironment(os.Getenv)
		s.recordVariables("agent-url", agentVariables)
	}
	variables, badVariables := otlp.ReadVariables(os.Getenv)
	if o.endpoint == "" {
		o.ignored = variables.Ignored
	}
	hasAgent := o.agentURL != off && (o.agentURL != "" || c.APM.Enabled())
	hasOTLP := o.endpoint != off && (o.endpoint != "" || variables.From != "")
	isConfigured := hasAgent || hasOTLP || o.prometheus == on // at least one destination
	hasPrometheus := o.prometheus == on || o.prometheus == "" && !isConfigured
	if o.prometheus == "" {
		s.setting("prometheus").Effective = map[bool]string{true: on, false: off}[hasPrometheus]
	}

	badObjectives := o.objectives.complete(c, hasPrometheus || hasOTLP)
	var badAgent, badOTLP, badPrometheus error
	if isConfigured && !hasAgent {
		o.agentURL = off
	}
	if o.agentURL != off {
		badAgent = o.addAgent(c, s, !hasAgent, agentVariables)
	}
	var dialects []points.Dialect // of the destinations that accept metrics
	if hasPrometheus {
		dialects = append(dialects, o.prometheusDialect)
	}
	if hasOTLP {
		dialects = append(dialects, o.dialect)
	}
	badMeasures := o.completeMeasures(c, dialects)
	badExemplars := check.Number("otlp-exemplars", o.exemplars, 0, exemplars.MaxLimit)
	if badExemplars == nil && (hasOTLP || hasPrometheus) && daemon.ForwardsTraces(c) {
		c.Exemplars = exemplars.New(o.exemplars)
	}
	if hasOTLP {
		badOTLP = o.addOTLP(c, s, variables, badVariables)
	}
	if hasPrometheus {
		badPrometheus = o.addPrometheus(c)
	}
	badGraph := o.checkGraph(hasPrometheus || hasOTLP)
	badObjectives = errors.Join(badObjectives, checkAttributes(c, c.Admit.Objectives)) // after all dimensions are known
	c.Zipkin.Labels.Attributes, c.Zipkin.Labels.Resource = c.OTLP.Labels.Attributes, c.OTLP.Labels.Resource
	c.Aggregate.Attributes = len(c.OTLP.Labels.Resource) > 0 && (c.OTLP.Enabled() || c.Zipkin.Enabled())
	return errors.Join(badAgent, badExemplars, badOTLP, badPrometheus, badGraph, badMeasures, badObjectives, c.OTLP.Labels.Check())
}

// completeMeasures sets the measures, and makes the OTLP receiver read their attributes and labels. dialects are those of
// the destinations that accept their metrics.
func (o *exporterOptions) completeMeasures(c *daemon.Config, dialects []points.Dialect) error {
	measures, err := measure.Parse(strings.Join(o.measures, " "))
	if err == nil {
		err = points.CheckMeasures(measures)
	}
	switch {
	case err != nil || len(measures) == 0:
		return err //nolint:wrapcheck // the error is complete
	case len(dialects) == 0:
		return errors.New("check --measure: no destination accepts values; add --prometheus or --otlp-metrics-endpoint")
	case !c.OTLP.Enabled():
		return errors.New("check --measure: only spans received over OTLP have values; add --otlp-addr or --otlp-socket")
	case c.OTLP.Semantics == sdkotlp.SemanticsDatadog:
		return errors.New("check --measure: --otlp-semantics=datadog counts no values; remove one of the flags")
	}
	hasOtherMetrics := func(d points.Dialect) bool { return d != points.Conventions }
	if !slices.ContainsFunc(dialects, hasOtherMetrics) {
		measures = slices.DeleteFunc(measures, isMetricOfConventions) // every destination has this metric
	}
	c.OTLP.Labels.Measures = measures
	c.OTLP.Labels.Attributes = slices.DeleteFunc(measure.Labels(measures), otel.IsDefaultLabel) // exporters add others
	return nil
}

// isMetricOfConventions reports whether a measure is a metric of the dialect conventions: durations with the same name.
func isMetricOfConventions(m measure.Measure) bool {
	hasSameName := func(metric semconv.Metric) bool { return metric.Name == m.Name }
	return m.IsDuration() && slices.ContainsFunc(semconv.Metrics[:], hasSameName)
}

// checkGraph checks the flags of the service graph. hasDestination is true if a destination accepts its metrics.
func (o *exporterOptions) checkGraph(hasDestination bool) error {
	switch {
	case !o.serviceGraph:
		return nil
	case !hasDestination:
		return errors.New("check --service-graph: no destination accepts it; add --prometheus or --otlp-metrics-endpoint")
	}
	return check.Number("service-graph-edges", o.serviceGraphEdges, 1, maxEdges)
}

// addAgent configures the Datadog agent as a destination. variables names the environment variables that
// contain its URL; it is empty if the URL is from elsewhere.
func (o *exporterOptions) addAgent(c *daemon.Config, s *settings, isDiscovered bool, variables string) error {
	c.Agent.AutoDiscovered = isDiscovered
	if isDiscovered {
		s.setting("agent-url").Effective = "looked for"
	}
	c.Agent.URL, _ = agent.ParseURL(agent.DefaultURL)
	o.agentURL = cmp.Or(o.agentURL, agent.DefaultURL)
	err := parseInto(&c.Agent.URL, o.agentURL, agent.ParseURL)
	if err != nil && variables != "" {
		err = fmt.Errorf("read %s: %w", variables, err)
	}
	return err
}

// addOTLP adds the exporter for OTLP metrics. variables contains the values of OpenTelemetry's environment
// variables, and badVariables the error of reading them.
func (o *exporterOptions) addOTLP(c *daemon.Config, s *settings, variables otlp.Variables,
	badVariables error,
) error {
	var badEndpoint error
	if o.endpoint == "" {
		s.recordVariables("otlp-metrics-endpoint", variables.From)
	} else {
		badEndpoint = parseInto(&variables.Endpoint, o.endpoint, otlp.ParseEndpoint)
	}
	o.endpoint = variables.Endpoint.String() // without a password
	if o.temporality == "" && variables.Preference != "" {
		s.recordVariables("otlp-temporality", otlp.TemporalityVariable)
	}
	o.temporality = cmp.Or(o.temporality, variables.Preference, otlp.Delta)
	if o.dialect == points.Conventions && !s.isSet(histogramFlag) {
		o.histogram, _ = points.ParseHistogram(histogramOfConventions)
		s.setting(histogramFlag).Effective = histogramOfConventions
	}
	config := otlp.Config{
		Version: version, Variables: variables, Dialect: o.dialect, Temporality: o.temporality,
		Bounds: o.histogram.Bounds, Millis: o.histogram.Millis, Exemplars: c.Exemplars,
		Measures: c.OTLP.Labels.Measures, Objectives: c.Admit.Objectives.Names(),
	}
	badDimensions := parseInto(&config.Dimensions, o.dimensions, points.ParseDimensions)
	if err := errors.Join(badVariables, badEndpoint, badDimensions, o.checkDialect()); err != nil {
		return err
	}
	if o.instance != noInstance {
		config.Instance = cmp.Or(o.instance, newInstance())
	}
	if o.serviceGraph {
		config.Graph = &points.ServiceGraph{Names: o.serviceGraphNames, Instance: config.Instance}
		config.MaxEdges = o.serviceGraphEdges
	}
	exporter, err := otlp.New(config)
	if err != nil {
		return err
	}
	c.Exporters = append(c.Exporters, exporter.Describe())
	c.OTLP.Labels.Resource = o.resource
	if o.dialect != points.Datadog {
		readDimensions(c, &config.Dimensions)
	}
	return readMetricAttributes(c, o.dialect)
}

const (
	histogramFlag = "otlp-histogram"
	// histogramOfConventions is the default of --otlp-histogram for the dialect conventions.
	histogramOfConventions = "explicit:sdk"
)

// checkDialect returns an error for each flag that has no effect with the value of --otlp-dialect.
func (o *exporterOptions) checkDialect() (err error) {
	hasAttributes := o.dimensions != points.AllDimensions || o.instance != ""
	if o.dialect == points.Datadog && hasAttributes {
		err = fmt.Errorf("check --otlp-dimensions and --otlp-instance-id: the dialect %s has neither; remove both",
			points.Datadog)
	}
	if o.dialect != points.Spanmetrics && o.histogram.Millis {
		err = errors.Join(err, fmt.Errorf("check --otlp-histogram: %s is of the dialect %s only; use %s",
			points.ExplicitMillis, points.Spanmetrics, points.Explicit))
	}
	return err
}

// readMetricAttributes makes receivers read the attributes of the metrics of a dialect. It returns an error if a
// receiver counts by rules that do not know them.
func readMetricAttributes(c *daemon.Config, dialect points.Dialect) error {
	if dialect != points.Conventions {
		return nil
	}
	c.OTLP.Labels.Metrics, c.Zipkin.Labels.Metrics = true, true
	if c.OTLP.Enabled() && c.OTLP.Semantics == sdkotlp.SemanticsDatadog {
		return fmt.Errorf("check dialect %s: the labels of --otlp-semantics %s lack its attributes; use --otlp-semantics %s",
			dialect, c.OTLP.Semantics, sdkotlp.SemanticsOTel)
	}
	return nil
}

// newInstance returns a random UUID (version 4).
func newInstance() string {
	var uuid [16]byte
	_, _ = rand.Read(uuid[:])     // never fails
	uuid[6] = uuid[6]&0x0f | 0x40 // version 4
	uuid[8] = uuid[8]&0x3f | 0x80 // variant of RFC 9562
	return fmt.Sprintf("%x-%x-%x-%x-%x", uuid[:4], uuid[4:6], uuid[6:8], uuid[8:10], uuid[10:])
}

// addPrometheus creates the exporter that Prometheus scrapes.
func (o *exporterOptions) addPrometheus(c *daemon.Config) error {
	config := prometheus.Config{
		URL: prometheus.Path, Dialect: o.prometheusDialect, NoNative: o.prometheusHistograms == onlyClassic,
		Exemplars: c.Exemplars, Measures: c.OTLP.Labels.Measures,
		Objectives: c.Admit.Objectives.Names(),
	}
	if o.prometheusHistograms != onlyNative {
		config.Bounds = o.prometheusBounds
	}
	err := parseInto(&config.Dimensions, o.prometheusDimensions, points.ParseDimensions)
	if o.prometheusAddr != "" {
		config.URL = "http://" + o.prometheusAddr + prometheus.Path
		err = errors.Join(err, check.Address("prometheus-addr", o.prometheusAddr))
	}
	if o.serviceGraph {
		config.Graph = &points.ServiceGraph{Names: o.serviceGraphNames}
		config.MaxEdges = o.serviceGraphEdges
	}
	c.Prometheus = prometheus.New(config)
	c.PrometheusAddr = o.prometheusAddr
	readDimensions(c, &config.Dimensions)
	return errors.Join(err, readMetricAttributes(c, o.prometheusDialect))
}

// readDimensions makes receivers read the span attributes that an exporter has as dimensions, and sets
// the budgets of these attributes. It also adds service.instance.id to the resource attributes, because
// no span has this attribute.
func readDimensions(c *daemon.Config, dimensions *points.Dimensions) {
	for name, budget := range dimensions.Named {
		if !slices.Contains(c.OTLP.Labels.Attributes, name) {
			c.OTLP.Labels.Attributes = append(c.OTLP.Labels.Attributes, name)
		}
		if name == "service.instance.id" {
			c.OTLP.Labels.Resource = append(c.OTLP.Labels.Resource, name)
		}
		if budget != 0 {
			c.Aggregate.LimitTag(name, budget)
		}
	}
}
