package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
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
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
)

// statisticsOptions are flags about where statistics go, as far as they are to be read.
type statisticsOptions struct {
	agentURL    string
	endpoint    string
	temporality otlp.Temporality
	dialect     points.Dialect
	dimensions  string
	resource    []string
	histogram   histogram
	instance    string
	exemplars   int
	scraped     scrapedOptions
}

const (
	on         = "on"
	off        = "off"  // stands for no destination
	noInstance = "none" // stands for no instance
)

func (o *statisticsOptions) group(c *daemon.Config) *commandline.Group {
	g := commandline.NewGroup("Exporters")
	o.dimensions, o.scraped.dimensions = points.AllDimensions, points.AllDimensions
	f := g.First
	f.Var(commandline.Text(&o.agentURL, "url"), "agent-url",
		"URL of the Datadog agent, http://host:port or unix:///path; off for none (default: "+
			"DD_TRACE_AGENT_URL, or DD_AGENT_HOST and DD_TRACE_AGENT_PORT; otherwise "+
			"http://127.0.0.1:8126, auto-discovered unless --apm-socket or --apm-addr needs it; off if "+
			"another destination is set)")
	f.Var(commandline.Text(&o.endpoint, "url"), "otlp-metrics-endpoint",
		"export statistics as OTLP metrics to this URL, http://host:4318/v1/metrics, https://... or "+
			"unix:///path; off for none (default: OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, or "+
			"OTEL_EXPORTER_OTLP_ENDPOINT with /v1/metrics; otherwise none)")
	o.scraped.addFirst(f)

	f = g.Rest
	f.DurationVar(&c.Aggregate.FlushInterval, "flush-interval", c.Aggregate.FlushInterval,
		"length of an interval, after which statistics are exported, 1s to 10s")
	f.BoolVar(&c.Aggregate.ConflateRuntimes, "conflate-runtimes", c.Aggregate.ConflateRuntimes,
		"merge origins that differ only in their runtime ID")
	f.Var(commandline.Choice(&o.temporality, "", otlp.Delta, otlp.Cumulative), "otlp-temporality",
		"temporality of OTLP metrics: delta, or cumulative for totals since the start of a series "+
			"(default: OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE, otherwise delta)")
	f.Var(commandline.Choice(&o.dialect, points.Spanmetrics, points.Spanmetrics, points.Datadog),
		"otlp-dialect", "names of OTLP metrics and attributes: spanmetrics as in the Collector's connector, datadog "+
			"as in Datadog's tracers")
	f.Var(commandline.Parsed(&o.histogram, exponential, "kind[:bounds]", parseHistogram), "otlp-histogram",
		"histograms of OTLP metrics: exponential, explicit with optional bounds in seconds "+
			"(explicit:sdk, explicit:0.01,0.1,1), or explicit-ms to export milliseconds")
	f.Var(commandline.Text(&o.dimensions, "names"), "otlp-dimensions",
		"optional attributes of OTLP metrics in the dialect spanmetrics: all, none, or a list such "+
			"as http.route,peer.service or all,-peer.service; up to eight can be any span or resource "+
			"attribute, with an optional budget: tenant.id=200")
	f.Var(commandline.Parsed(&o.resource, identifying, "names", parseResource), "otlp-resource-attributes",
		"resource attributes of OTLP input that are kept, and that distinguish origins: identifying "+
			"for service.instance.id, service.namespace and Kubernetes attributes, a list of names, or "+
			"none")
	f.IntVar(&o.exemplars, "otlp-exemplars", exemplars.DefaultLimit,
		"maximum number of exemplars per interval, in OTLP metrics and for Prometheus; 0 for none")
	f.Var(commandline.Text(&o.instance, "name"), "otlp-instance-id",
		"attribute collector.instance.id in the dialect spanmetrics, different for each daemon; none "+
			"to leave the attribute out (default: random)")
	o.scraped.addRest(f)
	return g
}

// complete turns them into the configuration.
func (o *statisticsOptions) complete(c *daemon.Config, s *settings) error {
	named := o.named(c)
	badAgent, badExemplars := o.chooseAgent(c, s, named), o.makeExemplars(c)
	exporter, badOTLP := o.exporter(c, s)
	if exporter != nil {
		c.Exporters = append(c.Exporters, exporter.Describe())
	}
	badScraped := o.scraped.complete(c, s, !named.any())
	if exporter != nil {
		c.OTLP.Labels.Resource = o.resource
	}
	if exporter != nil && o.dialect == points.Spanmetrics {
		nameDimensions(c, o.dimensions)
	}
	if c.Prometheus != nil {
		nameDimensions(c, o.scraped.dimensions)
	}
	if len(c.Exporters) == 0 && c.Prometheus == nil {
		c.Exemplars = nil // nobody wants any
	}
	c.Zipkin.Labels.Attributes, c.Zipkin.Labels.Resource = c.OTLP.Labels.Attributes, c.OTLP.Labels.Resource
	c.Aggregate.Attributes = len(c.OTLP.Labels.Resource) > 0 && (c.OTLP.Enabled() || c.Zipkin.Enabled())
	return errors.Join(badAgent, badExemplars, badOTLP, badScraped, c.OTLP.Labels.Check())
}

// makeExemplars makes the table of them where traces go on.
func (o *statisticsOptions) makeExemplars(c *daemon.Config) error {
	err := check.Number("otlp-exemplars", o.exemplars, 0, exemplars.MaxLimit)
	if err == nil && daemon.HandsOn(c) {
		c.Exemplars = exemplars.New(o.exemplars)
	}
	return err
}

// named are the destinations that somebody has named, by a flag or a variable. Who has traces handed on
// to the agent has named that.
type named struct{ agent, endpoint, scraped bool }

// any says whether there is one: then nobody looks for a destination.
func (n named) any() bool { return n.agent || n.endpoint || n.scraped }

// named are those of the flags as they were given, and of the environment.
func (o *statisticsOptions) named(c *daemon.Config) (n named) {
	url, variables := agentFromEnvironment()
	said, _ := otlp.ReadVariables(os.Getenv) // whoever reads them next says what is wrong
	n.agent = cmp.Or(o.agentURL, url) != off && (o.agentURL+variables != "" || c.APM.Enabled())
	n.endpoint = o.endpoint != off && (o.endpoint != "" || said.From != "")
	n.scraped = o.scraped.choice == on
	return n
}

// defaultAgent is where the agent is if nobody says otherwise.
var defaultAgent = agent.URL{Network: "tcp", Address: "127.0.0.1:8126"}

func (o *statisticsOptions) chooseAgent(c *daemon.Config, s *settings, n named) error {
	var variables string
	if o.agentURL == "" {
		o.agentURL, variables = agentFromEnvironment()
		s.fromVariable("agent-url", variables)
	}
	if !n.agent && n.any() {
		o.agentURL = off
	}
	if o.agentURL == off {
		return nil
	}
	if c.Agent.LookedFor = !n.agent; c.Agent.LookedFor {
		s.of("agent-url").Effective = "looked for"
	}
	c.Agent.URL = defaultAgent
	err := readInto(&c.Agent.URL, o.agentURL, agent.ParseURL)
	if err != nil {
		o.agentURL = "" // it may hold what nobody should see
		if variables != "" {
			err = fmt.Errorf("read %s: %w", variables, err)
		}
	}
	return err
}

// agentFromEnvironment is the agent's address as Datadog's tracers are told it, and the
// variables that said so.
func agentFromEnvironment() (url, variables string) {
	if url := os.Getenv("DD_TRACE_AGENT_URL"); url != "" {
		return url, "DD_TRACE_AGENT_URL"
	}
	var said []string
	for _, name := range []string{"DD_AGENT_HOST", "DD_TRACE_AGENT_PORT"} {
		if os.Getenv(name) != "" {
			said = append(said, name)
		}
	}
	// an IPv6 address may have brackets already
	host := strings.Trim(cmp.Or(os.Getenv("DD_AGENT_HOST"), "127.0.0.1"), "[]")
	return "http://" + net.JoinHostPort(host, cmp.Or(os.Getenv("DD_TRACE_AGENT_PORT"), "8126")),
		strings.Join(said, ", ")
}

// exporter makes the exporter that the flags and OpenTelemetry's variables ask for, or
// none. It returns all that is wrong.
func (o *statisticsOptions) exporter(c *daemon.Config, s *settings) (*otlp.Exporter, error) {
	config := otlp.Config{
		Version: version, Dialect: o.dialect, Bounds: o.histogram.bounds, Millis: o.histogram.isMillis,
	}
	if o.endpoint == off {
		return nil, nil
	}
	var mistakes error
	config.Variables, mistakes = otlp.ReadVariables(os.Getenv)
	switch {
	case o.endpoint != "":
		mistakes = errors.Join(mistakes, readInto(&config.Endpoint, o.endpoint, otlp.ParseEndpoint))
		o.endpoint = config.Endpoint.String() // without what nobody should see
	case config.From == "":
		return nil, nil
	default:
		o.endpoint = config.Endpoint.String()
		s.fromVariable("otlp-metrics-endpoint", config.From)
	}
	o.chooseTemporality(&config, s)
	mistakes = errors.Join(mistakes,
		readInto(&config.Dimensions, o.dimensions, points.ParseDimensions),
		o.checkDialect(config.Dialect))
	switch o.instance {
	case "":
		config.Instance = newInstance()
	case noInstance:
	default:
		config.Instance = o.instance
	}
	if mistakes != nil {
		return nil, mistakes
	}
	config.Exemplars = c.Exemplars
	return otlp.New(config)
}

// chooseTemporality takes the flag's before the variable's.
func (o *statisticsOptions) chooseTemporality(config *otlp.Config, s *settings) {
	if o.temporality == "" && config.Preference != "" {
		s.fromVariable("otlp-temporality", otlp.TemporalityVariable)
	}
	o.temporality = cmp.Or(o.temporality, config.Preference, otlp.Delta)
	config.Temporality = o.temporality
}

// checkDialect refuses flags that a dialect has no use for: they would change nothing, and
// nobody would see it.
func (o *statisticsOptions) checkDialect(d points.Dialect) error {
	if d != points.Datadog {
		return nil
	}
	var err error
	if o.dimensions != points.AllDimensions || o.instance != "" {
		err = fmt.Errorf("check --otlp-dimensions and --otlp-instance-id: they are of the dialect %s only",
			points.Spanmetrics)
	}
	if o.histogram.isMillis {
		err = errors.Join(err, fmt.Errorf("check --otlp-histogram: %s is of the dialect %s only; give %s",
			inMillis, points.Spanmetrics, explicit))
	}
	return err
}

// newInstance is a random UUID.
func newInstance() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// identifying stands for the attributes that say which process it is and where it runs.
const identifying = "identifying"

// parseResource reads names of attributes of a resource; identifying is one of them, and none stands
// alone.
func parseResource(text string) (names []string, err error) {
	if text == "none" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); name {
		case identifying:
			names = append(names, otel.Identifying...)
		case "", "none":
			return nil, fmt.Errorf("parse attributes %q: %q is no attribute's name; "+
				"give none, or names with commas as %s,cloud.region", text, name, identifying)
		default:
			names = append(names, name)
		}
	}
	return names, nil
}

// instanceName is the one attribute of who sent a span that does not stay where it is not asked for.
const instanceName = "service.instance.id"

// nameDimensions has the doors read the attributes that an exit names, and gives them their budgets.
// Who makes the exit says what is wrong with the text.
func nameDimensions(c *daemon.Config, text string) {
	dimensions, _ := points.ParseDimensions(text)
	for name, budget := range dimensions.Named {
		if names := c.OTLP.Labels.Attributes; !slices.Contains(names, name) {
			c.OTLP.Labels.Attributes = append(names, name)
		}
		if name == instanceName {
			c.OTLP.Labels.Resource = append(c.OTLP.Labels.Resource, name)
		}
		if budget != 0 {
			c.Aggregate.LimitTag(name, budget)
		}
	}
}
