package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush/otlp"
	"github.com/spf13/pflag"
)

// otlpOptions are the flags of the OTLP exporter as they were given.
type otlpOptions struct {
	endpoint    string
	temporality string
	dialect     string
	dimensions  string
	instance    string
	exemplars   int
	// Those that named the endpoint and the temporality, where no flag did.
	endpointVariable, temporalityVariable string
}

// noInstance is the instance that stands for none.
const noInstance = "none"

func (o *otlpOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.endpoint, "otlp-metrics-endpoint", "", "where statistics go as OTLP metrics too, http://host:4318/v1/metrics, https://... or unix:///path; off for nowhere (default: OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, or OTEL_EXPORTER_OTLP_ENDPOINT and /v1/metrics, else nowhere)")
	f.StringVar(&o.temporality, "otlp-temporality", "", "what is sent there: delta, what an interval has counted, or cumulative, running totals (default: OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE, else delta)")
	f.StringVar(&o.dialect, "otlp-dialect", string(otlp.Spanmetrics), "what metrics and attributes are called there: spanmetrics, as the Collector's connector, or datadog, as Datadog's tracers")
	f.StringVar(&o.dimensions, "otlp-dimensions", otlp.AllDimensions, "attributes of the dialect spanmetrics beside service, name, kind and status: all, none, or names with commas as http.route,peer.service")
	f.IntVar(&o.exemplars, "otlp-exemplars", exemplars.DefaultLimit, "exemplars of an interval at most: slow and failed spans of traces that --apm-socket, --apm-addr or --otlp-forward has handed on; 0 for none")
	f.StringVar(&o.instance, "otlp-instance-id", "", "collector.instance.id of that dialect, which tells daemons apart; none to leave it out (default: drawn at each start)")
}

// exporter makes the exporter that the flags and OpenTelemetry's variables ask for, or
// none, and where traces go on the table that its exemplars go through. It returns all
// that is wrong.
func (o *otlpOptions) exporter(c *daemon.Config) (*otlp.Exporter, error) {
	config := otlp.Config{Version: version}
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
		o.endpoint, o.endpointVariable = config.Endpoint.String(), config.From
	}
	mistakes = errors.Join(mistakes,
		o.chooseTemporality(&config),
		readInto(&config.Dialect, o.dialect, otlp.ParseDialect),
		readInto(&config.Dimensions, o.dimensions, otlp.ParseDimensions),
		o.checkDialect(config.Dialect),
		check.Number("otlp-exemplars", o.exemplars, 0, exemplars.MaxLimit))
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
	if c.APM.Enabled() || c.OTLP.Enabled() && c.OTLP.Forward.IsSet() {
		c.Exemplars = exemplars.New(o.exemplars)
		config.Exemplars = c.Exemplars
	}
	return otlp.New(config)
}

// chooseTemporality takes the flag's before the variable's.
func (o *otlpOptions) chooseTemporality(config *otlp.Config) error {
	if o.temporality == "" && config.Preference != "" {
		o.temporalityVariable = otlp.TemporalityVariable
	}
	o.temporality = cmp.Or(o.temporality, string(config.Preference), string(otlp.Delta))
	return readInto(&config.Temporality, o.temporality, otlp.ParseTemporality)
}

// checkDialect refuses flags that a dialect has no use for: they would change nothing, and
// nobody would see it.
func (o *otlpOptions) checkDialect(d otlp.Dialect) error {
	if d == otlp.Datadog && (o.dimensions != otlp.AllDimensions || o.instance != "") {
		return fmt.Errorf("check --otlp-dimensions and --otlp-instance-id: they are of the dialect %s only", otlp.Spanmetrics)
	}
	return nil
}

// newInstance is a random UUID.
func newInstance() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
